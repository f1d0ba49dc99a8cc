// LayerNorm backward: dx[N, D], dw[D] and db[D] from x, w, dy and the mean[N] and rstd[N] (float32) of the forward
// pass. The formulas and what is asked of the arrays: norm_backward.cuh.
//
// MODE         0 dx in two passes over a row, then the sums of dw and db in a launch of their own, which reads x
//              and dy again; 1 all in one pass, each thread keeping the sums of its columns
// THREADS      threads that share one row
// BLOCK        threads of a block, which so works on BLOCK / THREADS rows at a time
// VECTOR       elements moved by one instruction, a divisor of D, at most 16 bytes
// BLOCKS       blocks per multiprocessor in mode 1: each stores one partial row of dw and db
// AHEAD        in mode 1: 1 where the next row is loaded while one is worked on
// CACHE        a CacheHint
// SUM_COLUMNS  columns of a block of the final sums
#include "norm_backward.cuh"

template <typename T, int THREADS, int BLOCK, int VECTOR, int MODE, int BLOCKS, int AHEAD, int CACHE,
          long long D>
__global__ void __launch_bounds__(BLOCK, BLOCKS)
    layernorm_backward(const T* x, const T* w, const T* dy, const float* mean, const float* rstd, T* dx,
                       float* partial_w, float* partial_b, long long N) {
  norm_backward_rows<T, THREADS, BLOCK, VECTOR, MODE, AHEAD, CACHE, true, D>(
      {x, w, dy, mean, rstd, dx, partial_w, partial_b, N});
}

// In blocks of 32 by 8 threads, only in mode 0.
template <typename T, int VECTOR, int MODE, long long D>
__global__ void __launch_bounds__(256)
    layernorm_backward_columns(const T* x, const T* dy, const float* mean, const float* rstd,
                               float* partial_w, float* partial_b, long long N) {
  if constexpr (MODE == kRowsThenColumns) {
    norm_columns<T, VECTOR, 8, true, D>({x, nullptr, dy, mean, rstd, nullptr, partial_w, partial_b, N});
  }
}

// dw (blockIdx.y 0) and db from P rows of partial sums each, in blocks of SUM_COLUMNS by 1024 / SUM_COLUMNS
// threads.
template <typename T, int SUM_COLUMNS, long long D>
__global__ void __launch_bounds__(1024)
    layernorm_backward_sums(const float* partial_w, const float* partial_b, T* dw, T* db, long long P) {
  const bool bias = blockIdx.y == 1;
  add_partials<SUM_COLUMNS, 1024 / SUM_COLUMNS, D>(bias ? partial_b : partial_w, bias ? db : dw, P);
}
