// The plain statement of products of groups with scales. blockIdx.z is the group.
#include "reference.cu"

template <typename T, int SCALES>
__global__ void __launch_bounds__(kSide* kSide)
    scaled_grouped_mm_reference(const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, const float* scale_a,
                                const float* scale_b, const int* offsets, T* c, int M, int N, int K) {
  const int group = blockIdx.z, begin = group > 0 ? offsets[group - 1] : 0;
  const long long n = static_cast<long long>(blockIdx.x) * kSide + threadIdx.x % kSide;
  const int blocks = (N + kScaleDepth - 1) / kScaleDepth * ((K + kScaleDepth - 1) / kScaleDepth);
  b += static_cast<long long>(group) * N * K;
  scale_b += static_cast<long long>(group) * (SCALES == 2 ? blocks : N);
  for (long long m = begin + static_cast<long long>(blockIdx.y) * kSide + threadIdx.x / kSide;
       n < N && m < offsets[group]; m += static_cast<long long>(gridDim.y) * kSide) {
    c[m * N + n] = from_float<T>(float(scaled_sum<SCALES>(a, b, scale_a, scale_b, m, n, M, K)));
  }
}
