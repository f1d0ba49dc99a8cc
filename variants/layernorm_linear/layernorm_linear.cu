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
#include "matmul.cu"
#include "moments.cuh"

// A block of 256 threads a row; the second time the row comes from the caches. VECTOR divides K.
template <typename T, int VECTOR>
__global__ void __launch_bounds__(256)
    normalize_rows(const T* x, const T* gamma, const T* beta, T* normalized, float* mean, float* rstd, int K,
                   float eps) {
  using Combine = RowCombine<256, 1, Moments>;
  __shared__ typename Combine::Scratch scratch;
  const long long row = static_cast<long long>(blockIdx.x) * K;
  const int first = int(threadIdx.x) * VECTOR;
  float values[VECTOR];
  Moments moments[1] = {Moments::none()};
#pragma unroll 2
  for (int k = first; k < K; k += 256 * VECTOR) {
    Vector<T, VECTOR> item;
    load<kCacheDefault>(item, x + row + k);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
      values[i] = item.element(i);
    }
    moments[0].merge(moments_of(values, VECTOR));
  }
  Combine::combine(moments, scratch, 0);
  const float average = moments[0].mean;
  const float scale = rsqrtf(moments[0].deviations * (1.0f / float(K)) + eps);
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = average;
    rstd[blockIdx.x] = scale;
  }
#pragma unroll 2
  for (int k = first; k < K; k += 256 * VECTOR) {
    Vector<T, VECTOR> item, weight, offset;
    load<kCacheDefault>(item, x + row + k);
    load_constant(weight, gamma + k);
    load_constant(offset, beta + k);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
      values[i] = (item.element(i) - average) * scale * weight.element(i) + offset.element(i);
    }
    item.round_from(values);
    store<kCacheDefault>(normalized + row + k, item);
  }
}
