// Gradients of activation_forward: dx[n] = dy[n] * f'(x[n]), with GATE times up[n], and then dup[n] = dy[n] * f(x[n]),
// in float32. All are aligned to VECTOR elements; dx and dup may be x, up or dy, but not the same.
//
// ACTIVATION  f, as in activation.cuh
// THREADS     threads of a block
// VECTOR      elements moved by one instruction, at most 16 bytes
// UNROLL      vectors of one thread, all loaded before the first is used; a block covers THREADS * VECTOR * UNROLL
//             elements
// CACHE       a CacheHint
#include "activation.cuh"
#include "vector_io.cuh"

template <typename T, int ACTIVATION, int GATE, int THREADS, int VECTOR, int UNROLL, int CACHE>
__global__ void __launch_bounds__(THREADS)
    activation_backward(const T* x, const T* up, const T* dy, T* dx, T* dup, long long N) {
  constexpr int kBlock = THREADS * VECTOR * UNROLL;
  const long long first = static_cast<long long>(blockIdx.x) * kBlock;
  if (first + kBlock > N) {  // the end of the arrays, which need not be whole vectors
    for (long long n = first + threadIdx.x; n < N; n += THREADS) {
      const Activated f = activated<ACTIVATION>(to_float(x[n]));
      const float slope = to_float(dy[n]), gate = GATE ? to_float(up[n]) : 1.0f;
      dx[n] = from_float<T>(slope * gate * f.slope);
      if constexpr (GATE != 0) {
        dup[n] = from_float<T>(slope * f.value);
      }
    }
    return;
  }
  const long long at = first + threadIdx.x * VECTOR;
  Vector<T, VECTOR> inputs[UNROLL], gates[UNROLL], slopes[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    load<CACHE>(inputs[u], x + at + u * THREADS * VECTOR);
    load<CACHE>(slopes[u], dy + at + u * THREADS * VECTOR);
    if constexpr (GATE != 0) {
      load<CACHE>(gates[u], up + at + u * THREADS * VECTOR);
    }
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    float of_x[VECTOR], of_up[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
      const Activated f = activated<ACTIVATION>(inputs[u].element(i));
      const float slope = slopes[u].element(i);
      of_x[i] = slope * (GATE ? gates[u].element(i) : 1.0f) * f.slope;
      of_up[i] = slope * f.value;
    }
    inputs[u].round_from(of_x);
    store<CACHE>(dx + at + u * THREADS * VECTOR, inputs[u]);
    if constexpr (GATE != 0) {
      gates[u].round_from(of_up);
      store<CACHE>(dup + at + u * THREADS * VECTOR, gates[u]);
    }
  }
}
