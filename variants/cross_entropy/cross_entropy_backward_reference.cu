// The plain statement of cross-entropy's gradient, one block of any size a row, in float64.
#include "vector_io.cuh"

template <typename T>
__global__ void cross_entropy_backward_reference(const T* x, const long long* targets, const float* lse,
                                                 const float* dloss, T* dx, long long ignored, long long N,
                                                 long long D) {
  const long long row = blockIdx.x;
  if (row >= N) {
    return;
  }
  const long long target = targets[row];
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    const double probability = exp(double(to_float(x[row * D + d])) - lse[row]);
    const double gradient = target == ignored ? 0.0 : dloss[row] * (probability - (d == target ? 1.0 : 0.0));
    dx[row * D + d] = from_float<T>(float(gradient));
  }
}
