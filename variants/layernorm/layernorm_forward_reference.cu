// The plain statement of LayerNorm, one block of any size a row, in float64.
#include "vector_io.cuh"

// The sum of each thread's value, in every thread of the block.
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
__global__ void layernorm_forward_reference(const T* x, const T* w, const T* b, T* y, float* mean,
                                            float* rstd, long long N, long long D, float eps) {
  const long long row = blockIdx.x;
  if (row >= N) {
    return;
  }
  double sum = 0.0;
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    sum += to_float(x[row * D + d]);
  }
  const double average = block_sum(sum) / double(D);
  sum = 0.0;
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    const double apart = to_float(x[row * D + d]) - average;
    sum += apart * apart;
  }
  const double scale = 1.0 / sqrt(block_sum(sum) / double(D) + double(eps));
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    const double normalized = (to_float(x[row * D + d]) - average) * scale;
    y[row * D + d] = from_float<T>(float(normalized * to_float(w[d]) + to_float(b[d])));
  }
  if (threadIdx.x == 0) {
    mean[row] = float(average);
    rstd[row] = float(scale);
  }
}
