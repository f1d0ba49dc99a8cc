// The plain statement of the weighted sum, one block of any size a row, in float64.
#include "vector_io.cuh"

template <typename T>
__global__ void weighted_sum_forward_reference(const T* x, const T* w, T* y, long long N, long long D) {
  __shared__ double partial[1024];
  const long long row = blockIdx.x;
  if (row >= N) {
    return;
  }
  double sum = 0.0;
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    sum += double(to_float(x[row * D + d])) * to_float(w[d]);
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned int i = 1; i < blockDim.x; ++i) {
      sum += partial[i];
    }
    y[row] = from_float<T>(float(sum));
  }
}
