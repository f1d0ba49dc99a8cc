// The gradient of cross_entropy_forward, computed in float32: dx[n, d] = dloss[n] * (e^(x[n, d] - lse[n]) - 1 at
// target[n]). A row whose target is `ignored` has 0.
//
// x and dx are N rows of D elements, row-major and dense, aligned to VECTOR elements; dx may be x.
//
// THREADS  threads of a block, which works on THREADS * VECTOR * UNROLL elements of one row
// VECTOR   elements moved by one instruction, a divisor of D, at most 16 bytes
// UNROLL   vectors of one thread, all loaded before the first is used
// CACHE    a CacheHint
#include "softmax_state.cuh"
#include "vector_io.cuh"

template <typename T, int THREADS, int VECTOR, int UNROLL, int CACHE, long long D>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_backward(const T* x, const long long* targets, const float* lse, const float* dloss, T* dx,
                           long long ignored) {
  static_assert(D % VECTOR == 0 && D < (1ll << 30), "rows are whole vectors, offsets in a row are 32-bit");
  constexpr int kBlock = THREADS * VECTOR * UNROLL, kBlocks = (int(D) + kBlock - 1) / kBlock;
  const unsigned int block = blockIdx.x;
  const long long n = block / kBlocks, target = targets[n];
  const int first = int(block % kBlocks) * kBlock + int(threadIdx.x) * VECTOR;
  x += n * D;
  dx += n * D;
  Vector<T, VECTOR> items[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    items[u].raw = {};
    if (target != ignored && first + u * THREADS * VECTOR < int(D)) {
      load<CACHE>(items[u], x + first + u * THREADS * VECTOR);
    }
  }
  const float total = lse[n], scale = dloss[n];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    const int at = first + u * THREADS * VECTOR;
    if (at < int(D)) {
      float values[VECTOR];
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) {
        const float hit = at + i == target ? 1.0f : 0.0f;
        values[i] = target == ignored ? 0.0f : scale * (exp_below(items[u].element(i), total) - hit);
      }
      items[u].round_from(values);
      store<CACHE>(dx + at, items[u]);
    }
  }
}
