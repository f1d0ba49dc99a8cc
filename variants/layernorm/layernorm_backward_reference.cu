// The plain statement of LayerNorm's gradients in float64: dx with one block of any size a row, dw and db with one
// block of any shape for blockDim.x columns.
#include "vector_io.cuh"

// The sum of each thread's value, in every thread of a block of one row of threads.
__device__ double block_sum(double value) {
  __shared__ double partial[1024];
  __syncthreads();
  partial[threadIdx.x] = value;
  __syncthreads();
  double sum = 0.0;
  for (unsigned int i = 0; i < blockDim.x; ++i) {
    sum += partial[i];
  }
  return sum;
}

template <typename T>
__global__ void layernorm_backward_reference(const T* x, const T* w, const T* dy, const float* mean,
                                             const float* rstd, T* dx, long long N, long long D) {
  const long long row = blockIdx.x;
  if (row >= N) {
    return;
  }
  const double average = mean[row], scale = rstd[row];
  double with_h = 0.0, alone = 0.0;
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    const double g = double(to_float(dy[row * D + d])) * to_float(w[d]);
    with_h += g * (to_float(x[row * D + d]) - average) * scale;
    alone += g;
  }
  with_h = block_sum(with_h) / double(D);
  alone = block_sum(alone) / double(D);
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    const double g = double(to_float(dy[row * D + d])) * to_float(w[d]);
    const double h = (to_float(x[row * D + d]) - average) * scale;
    dx[row * D + d] = from_float<T>(float(scale * (g - h * with_h - alone)));
  }
}

template <typename T>
__global__ void layernorm_backward_columns_reference(const T* x, const T* dy, const float* mean,
                                                     const float* rstd, T* dw, T* db, long long N,
                                                     long long D) {
  __shared__ double partial_w[1024], partial_b[1024];
  const long long d = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const unsigned int thread = threadIdx.y * blockDim.x + threadIdx.x;
  double sum_w = 0.0, sum_b = 0.0;
  for (long long row = threadIdx.y; d < D && row < N; row += blockDim.y) {
    const double gradient = to_float(dy[row * D + d]);
    sum_w += gradient * (double(to_float(x[row * D + d])) - mean[row]) * rstd[row];
    sum_b += gradient;
  }
  partial_w[thread] = sum_w;
  partial_b[thread] = sum_b;
  __syncthreads();
  if (threadIdx.y == 0 && d < D) {
    for (unsigned int i = 1; i < blockDim.y; ++i) {
      sum_w += partial_w[i * blockDim.x + threadIdx.x];
      sum_b += partial_b[i * blockDim.x + threadIdx.x];
    }
    dw[d] = from_float<T>(float(sum_w));
    db[d] = from_float<T>(float(sum_b));
  }
}
