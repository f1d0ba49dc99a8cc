// The plain statement of cross-entropy, one block of any size a row, in float64.
#include "vector_io.cuh"

template <typename T>
__global__ void cross_entropy_forward_reference(const T* x, const long long* targets, float* loss, float* lse,
                                                long long ignored, long long N, long long D) {
  __shared__ double partial[1024];
  const long long row = blockIdx.x;
  if (row >= N) {
    return;
  }
  x += row * D;
  const long long target = targets[row];
  double maximum = to_float(x[0]);
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    maximum = fmax(maximum, double(to_float(x[d])));
  }
  partial[threadIdx.x] = maximum;
  __syncthreads();
  for (unsigned int i = 0; i < blockDim.x; ++i) {
    maximum = fmax(maximum, partial[i]);
  }
  __syncthreads();
  double sum = 0.0;
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    sum += exp(to_float(x[d]) - maximum);
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  sum = 0.0;
  for (unsigned int i = 0; i < blockDim.x; ++i) {
    sum += partial[i];
  }
  if (threadIdx.x == 0) {
    loss[row] = target == ignored ? 0.0f : float(log(sum) + maximum - to_float(x[target]));
    lse[row] = target == ignored ? 0.0f : float(log(sum) + maximum);
  }
}
