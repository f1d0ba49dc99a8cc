// The plain statement of products with scales, in float32 sums of 32 products that are added up in float64 and scaled
// there. 16 x 16 threads have an element each.
#include "e4m3_types.cuh"
#include "vector_io.cuh"

constexpr int kDepth = 32, kSide = 16, kScaleDepth = 128;

// Of the element (m, n). B, scale_b and n are those of one matrix.
template <int SCALES>
__device__ double scaled_sum(const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, const float* scale_a,
                             const float* scale_b, long long m, long long n, int M, int K) {
  const int blocks = (K + kScaleDepth - 1) / kScaleDepth;
  double sum = 0;
  for (int first = 0; first < K; first += kDepth) {
    float part = 0.0f;
    for (int k = first; k < first + kDepth && k < K; ++k) {
      part = fmaf(to_float(a[m * K + k]), to_float(b[n * K + k]), part);
    }
    const int block = first / kScaleDepth;
    sum += SCALES == 2 ? double(part) * scale_a[static_cast<long long>(block) * M + m] *
                             scale_b[n / kScaleDepth * blocks + block]
                       : part;
  }
  const bool by_row = SCALES % 3 == 1;
  return SCALES == 2 ? sum : sum * double(scale_a[by_row ? m : 0]) * scale_b[by_row ? n : 0];
}

template <typename T, int SCALES>
__global__ void __launch_bounds__(kSide* kSide)
    scaled_mm_reference(const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, const float* scale_a,
                        const float* scale_b, T* c, int M, int N, int K) {
  const long long n = static_cast<long long>(blockIdx.x) * kSide + threadIdx.x % kSide;
  for (long long m = static_cast<long long>(blockIdx.y) * kSide + threadIdx.x / kSide; n < N && m < M;
       m += static_cast<long long>(gridDim.y) * kSide) {
    c[m * N + n] = from_float<T>(float(scaled_sum<SCALES>(a, b, scale_a, scale_b, m, n, M, K)));
  }
}
