// y[n] = f(x[n]) for n < N, with GATE times up[n], in float32. All are aligned to VECTOR elements; y may be x or up.
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
__global__ void __launch_bounds__(THREADS) activation_forward(const T* x, const T* up, T* y, long long N) {
  constexpr int kBlock = THREADS * VECTOR * UNROLL;
  const long long first = static_cast<long long>(blockIdx.x) * kBlock;
  if (first + kBlock > N) {  // the end of the arrays, which need not be whole vectors
    for (long long n = first + threadIdx.x; n < N; n += THREADS) {
      y[n] = from_float<T>(activated<ACTIVATION>(to_float(x[n])).value * (GATE ? to_float(up[n]) : 1.0f));
    }
    return;
  }
  const long long at = first + threadIdx.x * VECTOR;
  Vector<T, VECTOR> inputs[UNROLL], gates[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    load<CACHE>(inputs[u], x + at + u * THREADS * VECTOR);
    if constexpr (GATE != 0) {
      load<CACHE>(gates[u], up + at + u * THREADS * VECTOR);
    }
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    float values[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
      values[i] = activated<ACTIVATION>(inputs[u].element(i)).value * (GATE ? gates[u].element(i) : 1.0f);
    }
    inputs[u].round_from(values);
    store<CACHE>(y + at + u * THREADS * VECTOR, inputs[u]);
  }
}
