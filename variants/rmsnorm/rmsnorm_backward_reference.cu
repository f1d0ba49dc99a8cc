// The plain statement of RMSNorm's gradients in float64: dx with one block of any size a row, dw with one block of
// any shape for blockDim.x columns.
#include "vector_io.cuh"

template <typename T>
__global__ void rmsnorm_backward_reference(const T* x, const T* w, const T* dy, const float* rstd, T* dx,
                                           long long N, long long D) {
  __shared__ double partial[1024];
  const long long row = blockIdx.x;
  if (row >= N) {
    return;
  }
  const double scale = rstd[row];
  double sum = 0.0;
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    sum += double(to_float(dy[row * D + d])) * to_float(w[d]) * to_float(x[row * D + d]) * scale;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  sum = 0.0;
  for (unsigned int i = 0; i < blockDim.x; ++i) {
    sum += partial[i];
  }
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    const double g = double(to_float(dy[row * D + d])) * to_float(w[d]);
    const double h = to_float(x[row * D + d]) * scale;
    dx[row * D + d] = from_float<T>(float(scale * (g - h * sum / double(D))));
  }
}

template <typename T>
__global__ void rmsnorm_backward_columns_reference(const T* x, const T* dy, const float* rstd, T* dw,
                                                   long long N, long long D) {
  __shared__ double partial[1024];
  const long long d = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  double sum = 0.0;
  for (long long row = threadIdx.y; d < D && row < N; row += blockDim.y) {
    sum += double(to_float(dy[row * D + d])) * to_float(x[row * D + d]) * rstd[row];
  }
  partial[threadIdx.y * blockDim.x + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && d < D) {
    for (unsigned int i = 1; i < blockDim.y; ++i) {
      sum += partial[i * blockDim.x + threadIdx.x];
    }
    dw[d] = from_float<T>(float(sum));
  }
}
