// The plain statement of grouped products, in float32 sums of 32 products that are added up in float64. 16 x 16
// threads have an element each; blockIdx.z is the group.
#include "vector_io.cuh"

constexpr int kDepth = 32, kSide = 16;

template <typename T, int TRANSPOSE_B>
__global__ void __launch_bounds__(kSide* kSide)
    grouped_mm_reference(const T* a, const T* b, const int* offsets, T* c, int N, int K) {
  const int group = blockIdx.z, begin = group > 0 ? offsets[group - 1] : 0;
  const long long n = static_cast<long long>(blockIdx.x) * kSide + threadIdx.x % kSide;
  const T* of_group = b + static_cast<long long>(group) * N * K;
  for (long long m = begin + static_cast<long long>(blockIdx.y) * kSide + threadIdx.x / kSide;
       n < N && m < offsets[group]; m += static_cast<long long>(gridDim.y) * kSide) {
    double sum = 0;
    for (int first = 0; first < K; first += kDepth) {
      float part = 0.0f;
      for (int k = first; k < first + kDepth && k < K; ++k) {
        const T right = of_group[TRANSPOSE_B ? n * K + k : static_cast<long long>(k) * N + n];
        part = fmaf(float(to_float(a[m * K + k])), float(to_float(right)), part);
      }
      sum += part;
    }
    c[m * N + n] = from_float<T>(float(sum));
  }
}
