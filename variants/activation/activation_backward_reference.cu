// One element a thread, in float64, for a grid of any size.
#include "vector_io.cuh"

struct ReferenceActivated {
  double value, slope;
};

template <int ACTIVATION>
__device__ ReferenceActivated reference_activated(double x) {
  if (ACTIVATION == 1) {
    const double below = 0.5 * (1.0 + erf(x * 0.70710678118654752));
    return {x * below, below + x * 0.39894228040143268 * exp(-0.5 * x * x)};
  }
  if (ACTIVATION == 2) {
    const double s = 1.0 / (1.0 + exp(-x));
    return {x * s, s + x * s * (1.0 - s)};
  }
  if (ACTIVATION == 0) {
    return {x, 1.0};
  }
  const double t = tanh(0.79788456080286536 * (x + 0.044715 * x * x * x));
  return {0.5 * x * (1.0 + t),
          0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * 0.79788456080286536 * (1.0 + 0.134145 * x * x)};
}

template <typename T, int ACTIVATION, int GATE>
__global__ void activation_backward_reference(const T* x, const T* up, const T* dy, T* dx, T* dup,
                                              long long N) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long n = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; n < N; n += stride) {
    const ReferenceActivated f = reference_activated<ACTIVATION>(to_float(x[n]));
    const double slope = to_float(dy[n]), gate = GATE ? double(to_float(up[n])) : 1.0;
    dx[n] = from_float<T>(float(slope * gate * f.slope));
    if (GATE) {
      dup[n] = from_float<T>(float(slope * f.value));
    }
  }
}
