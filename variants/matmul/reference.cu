// The plain statement of a matrix product, in float32 sums of 32 products that are added up in float64. 256
// threads have 64 x 64 elements, 4 x 4 each, and share what they read: a thread an element takes minutes for the
// products of a large model.
#include "vector_io.cuh"

constexpr int kReferenceTile = 64, kReferenceDepth = 32, kReferenceThreads = 256, kReferenceSide = 16;

// 64 rows of an operand, 32 columns of each, as [column][row]; zeros outside of it. BY_COLUMNS: it lies in
// memory column by column.
template <int BY_COLUMNS, typename T>
__device__ void load_tile(float (&tile)[kReferenceDepth][kReferenceTile + 1], const T* operand,
                          long long first_row, long long rows, long long first_column, long long columns) {
  for (int i = threadIdx.x; i < kReferenceTile * kReferenceDepth; i += kReferenceThreads) {
    const int row = BY_COLUMNS ? i % kReferenceTile : i / kReferenceDepth;
    const int column = BY_COLUMNS ? i / kReferenceTile : i % kReferenceDepth;
    const long long r = first_row + row, c = first_column + column;
    const bool inside = r < rows && c < columns;
    tile[column][row] = inside ? float(to_float(operand[BY_COLUMNS ? c * rows + r : r * columns + c])) : 0.0f;
  }
}

template <int BIAS, int ACTIVATION, typename T>
__device__ T finished(double sum, const T* bias, long long n) {
  if (BIAS != 0) {
    sum += to_float(bias[n]);
  }
  if (ACTIVATION == 1) {
    sum *= 0.5 * (1.0 + erf(sum * 0.70710678118654752));
  } else if (ACTIVATION == 2) {
    sum /= 1.0 + exp(-sum);
  }
  return from_float<T>(float(sum));
}

template <typename T, int TRANSPOSE_A, int TRANSPOSE_B, int BIAS, int ACTIVATION>
__global__ void __launch_bounds__(kReferenceThreads)
    matmul_reference(const T* a, const T* b, const T* bias, T* c, int M, int N, int K) {
  constexpr int kEach = kReferenceTile / kReferenceSide;
  __shared__ float left[kReferenceDepth][kReferenceTile + 1], right[kReferenceDepth][kReferenceTile + 1];
  const long long first_m = static_cast<long long>(blockIdx.y) * kReferenceTile;
  const long long first_n = static_cast<long long>(blockIdx.x) * kReferenceTile;
  const int x = threadIdx.x % kReferenceSide, y = threadIdx.x / kReferenceSide;
  double sum[kEach][kEach] = {};
  for (int first = 0; first < K; first += kReferenceDepth) {
    load_tile<TRANSPOSE_A>(left, a, first_m, M, first, K);
    load_tile<!TRANSPOSE_B>(right, b, first_n, N, first, K);
    __syncthreads();
    float part[kEach][kEach] = {};
    for (int k = 0; k < kReferenceDepth; ++k) {
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) {
          part[i][j] = fmaf(left[k][y + kReferenceSide * i], right[k][x + kReferenceSide * j], part[i][j]);
        }
      }
    }
    for (int i = 0; i < kEach; ++i) {
      for (int j = 0; j < kEach; ++j) {
        sum[i][j] += part[i][j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) {
      const long long m = first_m + y + kReferenceSide * i, n = first_n + x + kReferenceSide * j;
      if (m < M && n < N) {
        c[m * N + n] = finished<BIAS, ACTIVATION>(sum[i][j], bias, n);
      }
    }
  }
}
