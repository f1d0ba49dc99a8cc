// One element a thread, in float64, for a grid of any size.
#include "vector_io.cuh"

template <int ACTIVATION>
__device__ double reference_activation(double x) {
  if (ACTIVATION == 1) {
    return 0.5 * x * (1.0 + erf(x * 0.70710678118654752));
  }
  if (ACTIVATION == 2) {
    return x / (1.0 + exp(-x));
  }
  if (ACTIVATION == 0) {
    return x;
  }
  return 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}

template <typename T, int ACTIVATION, int GATE>
__global__ void activation_forward_reference(const T* x, const T* up, T* y, long long N) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long n = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; n < N; n += stride) {
    const double value = reference_activation<ACTIVATION>(to_float(x[n]));
    y[n] = from_float<T>(float(GATE ? value * to_float(up[n]) : value));
  }
}
