// The plain statement of a matrix product: one thread an element, in float32 sums of 32 products that are added
// up in float64.
#include "vector_io.cuh"

template <typename T, int TRANSPOSE_A, int TRANSPOSE_B, int BIAS, int ACTIVATION>
__global__ void matmul_reference(const T* a, const T* b, const T* bias, T* c, int M, int N, int K) {
  const long long n = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long m = static_cast<long long>(blockIdx.y) * blockDim.y + threadIdx.y;
  if (m >= M || n >= N) {
    return;
  }
  const T* left = TRANSPOSE_A ? a + m : a + m * K;
  const T* right = TRANSPOSE_B ? b + n * K : b + n;
  const long long left_step = TRANSPOSE_A ? M : 1, right_step = TRANSPOSE_B ? 1 : N;
  double sum = 0.0;
  for (int first = 0; first < K; first += 32) {
    float part = 0.0f;
    for (int k = first; k < K && k < first + 32; ++k) {
      part = fmaf(to_float(left[k * left_step]), to_float(right[k * right_step]), part);
    }
    sum += part;
  }
  if (BIAS != 0) {
    sum += to_float(bias[n]);
  }
  if (ACTIVATION == 1) {
    sum *= 0.5 * (1.0 + erf(sum * 0.70710678118654752));
  } else if (ACTIVATION == 2) {
    sum /= 1.0 + exp(-sum);
  }
  c[m * N + n] = from_float<T>(float(sum));
}
