// y = activation(LayerNorm(x) * W + bias), x of M x K, W of K x N and y of M x N elements: normalize_rows, then the
// matrix product of matmul.cu, whose tunables and layout flags these are (TRANSPOSE_W: W is given as N x K).
//
// The normalized rows are rounded to T on their way to the product, in the buffer `normalized`, as two modules of a
// model would do it. mean and rstd of each row are float32, saved for the backward pass.
//
// Why two launches: every block of the product needs the statistics of all its rows first, and to normalize A on its
// way through shared memory costs a block each time what is done here once for all of them. To normalize the sums
// instead (rstd * (x * gammaW - mean * the columns' sums of gammaW)) loses what a large mean cancels, and rounds
// gammaW.
#include "layernorm_forward.cu"
#include "matmul.cu"

// Threads of a block, which has one row: at most 128 bytes of it for each, up to 64 KiB.
template <typename T>
__host__ __device__ constexpr int normalizing_threads(long long K) {
  return K * int(sizeof(T)) <= 16384 ? 128 : 512;
}

// Longer rows are read twice, others stay in registers.
template <typename T>
__host__ __device__ constexpr int normalizing_mode(long long K) {
  return K * int(sizeof(T)) <= 65536 ? kRegisters : kTwoPasses;
}

template <typename T, int VECTOR, long long K>
using NormalizedRow = RowLayout<normalizing_threads<T>(K), VECTOR, K>;

// VECTOR divides K.
template <typename T, int VECTOR, long long K>
__global__ void __launch_bounds__(
    normalizing_threads<T>(K),
    resident_blocks(normalizing_threads<T>(K),
                    row_registers<T, NormalizedRow<T, VECTOR, K>, normalizing_mode<T>(K), 1>()))
    normalize_rows(const T* x, const T* gamma, const T* beta, T* normalized, float* mean, float* rstd,
                   long long rows, float eps) {
  using L = NormalizedRow<T, VECTOR, K>;
  using C = RowCombine<L::kThreads, 1, Moments>;
  __shared__ typename C::Scratch scratch;
  const long long row = blockIdx.x;
  if constexpr (normalizing_mode<T>(K) == kRegisters) {
    rows_in_registers<L, C, 1, kCacheDefault>(x, gamma, beta, normalized, mean, rstd, row, 1, rows, eps,
                                              scratch);
  } else {
    two_passes<L, C, 2, kCacheDefault>(x + row * K, gamma, beta, normalized + row * K, mean + row, rstd + row,
                                       row < rows, eps, scratch);
  }
}
