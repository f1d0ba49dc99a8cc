// Fetching rows into L2 before their block comes.
#pragma once

// Has L2 fetch the rows of the block that comes about BYTES of x later, as one request. A block's loads then
// find them there, so that memory streams on while blocks reduce, write and end, and is read in runs of whole
// rows. Nobody fetches for the first blocks, and the last have nobody to fetch for. Streaming loads (ld.cs)
// take longer with it than without. Needs sm_90 (before that it does nothing), x aligned to 16 bytes, rows of
// a multiple of them, and a block for each ROWS rows.
template <int ROWS, long long BYTES, long long D, typename T>
__device__ __forceinline__ void fetch_ahead(const T* x, long long N) {
#if __CUDA_ARCH__ >= 900
  constexpr long long kBlockBytes = ROWS * D * static_cast<long long>(sizeof(T));
  constexpr long long kBlocks = BYTES < kBlockBytes ? 1 : BYTES / kBlockBytes;
  static_assert(kBlockBytes % 16 == 0, "L2 fetches multiples of 16 bytes");
  const long long row = (blockIdx.x + kBlocks) * ROWS;
  if (threadIdx.x == 0 && threadIdx.y == 0 && row + ROWS <= N) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(x + row * D), "n"(int(kBlockBytes)));
  }
#endif
}
