// The plain statement of RMSNorm with an added residual, one block of any size a row, in float64 but for the sum, which
// is rounded to T before it is normalized.
#include "vector_io.cuh"

template <typename T, int RESIDUAL, int RSTD>
__global__ void rmsnorm_fused_forward_reference(const T* x, const T* residual, const T* w, T* sum, T* y,
                                                float* rstd, long long N, long long D, float eps) {
  __shared__ double partial[1024];
  const long long row = blockIdx.x;
  if (row >= N) {
    return;
  }
  double squares = 0.0;
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    auto value = to_float(x[row * D + d]);
    if (RESIDUAL != 0) {
      sum[row * D + d] = from_float<T>(value + to_float(residual[row * D + d]));
      value = to_float(sum[row * D + d]);
    }
    squares += double(value) * value;
  }
  partial[threadIdx.x] = squares;
  __syncthreads();
  squares = 0.0;
  for (unsigned int i = 0; i < blockDim.x; ++i) {
    squares += partial[i];
  }
  const double scale = 1.0 / sqrt(squares / double(D) + double(eps));
  if (RSTD != 0 && threadIdx.x == 0) {
    rstd[row] = float(scale);
  }
  for (long long d = threadIdx.x; d < D; d += blockDim.x) {
    const double value = to_float(RESIDUAL != 0 ? sum[row * D + d] : x[row * D + d]);
    y[row * D + d] = from_float<T>(float(value * scale * to_float(w[d])));
  }
}
