// The plain statement of RMSNorm, one block of any size a row, summed in float64.
#include "vector_io.cuh"

template <typename T>
__global__ void rmsnorm_forward_reference(const T* x, const T* w, T* y, long long N, long long D, float eps) {
  __shared__ double partial[1024];
  const long long row = blockIdx.x;
  if (row >= N) return;
  double sum = 0.0;
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    const double value = to_float(x[row * D + d]);
    sum += value * value;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned int i = 1; i < blockDim.x; ++i) sum += partial[i];
    partial[0] = 1.0 / sqrt(sum / double(D) + double(eps));
  }
  __syncthreads();
  const double scale = partial[0];
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    y[row * D + d] = from_float<T>(float(to_float(x[row * D + d]) * scale * to_float(w[d])));
  }
}
