// The plain statement of the weighted sum's gradients: dx with one block of any size a row, dw in float64 with one
// block of any shape for blockDim.x columns.
#include "vector_io.cuh"

template <typename T>
__global__ void weighted_sum_backward_reference(const T* w, const T* dy, T* dx, long long N, long long D) {
  const long long row = blockIdx.x;
  for (long long d = threadIdx.x; row < N && d < D; d += blockDim.x) {
    dx[row * D + d] = from_float<T>(float(to_float(dy[row]) * to_float(w[d])));
  }
}

template <typename T>
__global__ void weighted_sum_backward_columns_reference(const T* x, const T* dy, T* dw, long long N,
                                                        long long D) {
  __shared__ double partial[1024];
  const long long d = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  double sum = 0.0;
  for (long long row = threadIdx.y; d < D && row < N; row += blockDim.y) {
    sum += double(to_float(dy[row])) * to_float(x[row * D + d]);
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
