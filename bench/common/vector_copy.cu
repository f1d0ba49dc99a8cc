// The yardstick of the benchmark: a copy of the bytes that a normalization must move.

// to[i] = from[i] for i < count, in vectors of 16 bytes; a thread moves UNROLL of them, all loaded before the
// first store.
template <int THREADS, int UNROLL, bool STREAMING>
__global__ void __launch_bounds__(THREADS) vector_copy(const uint4* from, uint4* to, long long count) {
  const long long first = static_cast<long long>(blockIdx.x) * (THREADS * UNROLL) + threadIdx.x;
  uint4 vectors[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    const long long at = first + u * THREADS;
    if (at < count) {
      vectors[u] = STREAMING ? __ldcs(from + at) : from[at];
    }
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    const long long at = first + u * THREADS;
    if (at >= count) {
      continue;
    }
    if (STREAMING) {
      __stcs(to + at, vectors[u]);
    } else {
      to[at] = vectors[u];
    }
  }
}
