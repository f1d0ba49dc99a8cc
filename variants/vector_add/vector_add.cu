// c[n] = a[n] + b[n] for n < N, added in float32. All three are aligned to VECTOR elements; c may be a or b.
//
// THREADS  threads of a block
// VECTOR   elements moved by one instruction, at most 16 bytes
// UNROLL   vectors of one thread, all loaded before the first is used; a block covers THREADS * VECTOR *
// UNROLL elements
#include "vector_io.cuh"

template <typename T, int THREADS, int VECTOR, int UNROLL>
__global__ void __launch_bounds__(THREADS) vector_add(const T* a, const T* b, T* c, long long N) {
  constexpr int kBlock = THREADS * VECTOR * UNROLL;
  const long long first = static_cast<long long>(blockIdx.x) * kBlock;
  if (first + kBlock > N) {  // the end of the arrays, which need not be whole vectors
    for (long long n = first + threadIdx.x; n < N; n += THREADS)
      c[n] = from_float<T>(to_float(a[n]) + to_float(b[n]));
    return;
  }
  Vector<T, VECTOR> left[UNROLL], right[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    const long long at = first + (u * THREADS + int(threadIdx.x)) * VECTOR;
    load<kCacheDefault>(left[u], a + at);
    load<kCacheDefault>(right[u], b + at);
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    float sums[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) sums[i] = left[u].element(i) + right[u].element(i);
    left[u].round_from(sums);
    store<kCacheDefault>(c + first + (u * THREADS + int(threadIdx.x)) * VECTOR, left[u]);
  }
}
