// The plain statement of softmax's gradient, one block of any size a row, in float64.
#include "vector_io.cuh"

template <typename T>
__global__ void softmax_backward_reference(const T* y, const T* dy, T* dx, long long N, long long D) {
  __shared__ double partial[1024];
  const long long row = blockIdx.x;
  if (row >= N) {
    return;
  }
  double sum = 0.0;
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    sum += double(to_float(y[row * D + d])) * to_float(dy[row * D + d]);
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  sum = 0.0;
  for (unsigned int i = 0; i < blockDim.x; ++i) {
    sum += partial[i];
  }
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    dx[row * D + d] = from_float<T>(float(to_float(y[row * D + d]) * (to_float(dy[row * D + d]) - sum)));
  }
}
