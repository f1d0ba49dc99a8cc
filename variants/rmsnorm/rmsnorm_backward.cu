// RMSNorm backward: dx[N, D] and dw[D] from x, w, dy and the rstd[N] (float32) of the forward pass. The formulas
// and what is asked of the arrays: norm_backward.cuh.
//
// MODE         0 dx in two passes over a row, then the sums of dw in a launch of their own, which reads x and dy
//              again; 1 both in one pass, each thread keeping the sums of its columns
// THREADS      threads that share one row
// BLOCK        threads of a block, which so works on BLOCK / THREADS rows at a time
// VECTOR       elements moved by one instruction, a divisor of D, at most 16 bytes
// BLOCKS       blocks per multiprocessor in mode 1: each stores one partial row of dw
// AHEAD        in mode 1: 1 where the next row is loaded while one is worked on
// CACHE        a CacheHint
// SUM_COLUMNS  columns of a block of the final sums
#include "norm_backward.cuh"

template <typename T, int THREADS, int BLOCK, int VECTOR, int MODE, int BLOCKS, int AHEAD, int CACHE,
          long long D>
__global__ void __launch_bounds__(BLOCK, BLOCKS)
    rmsnorm_backward(const T* x, const T* w, const T* dy, const float* rstd, T* dx, float* partial_w,
                     long long N) {
  norm_backward_rows<T, THREADS, BLOCK, VECTOR, MODE, AHEAD, CACHE, false, D>(
      {x, w, dy, nullptr, rstd, dx, partial_w, nullptr, N});
}

// In blocks of 32 by 8 threads, only in mode 0.
template <typename T, int VECTOR, int MODE, long long D>
__global__ void __launch_bounds__(256)
    rmsnorm_backward_columns(const T* x, const T* dy, const float* rstd, float* partial_w, long long N) {
  if constexpr (MODE == kRowsThenColumns) {
    norm_columns<T, VECTOR, 8, false, D>({x, nullptr, dy, nullptr, rstd, nullptr, partial_w, nullptr, N});
  }
}

// dw from P rows of partial sums, in blocks of SUM_COLUMNS by 1024 / SUM_COLUMNS threads.
template <typename T, int SUM_COLUMNS, long long D>
__global__ void __launch_bounds__(1024) rmsnorm_backward_sums(const float* partial_w, T* dw, long long P) {
  add_partials<SUM_COLUMNS, 1024 / SUM_COLUMNS, D>(partial_w, dw, P);
}
