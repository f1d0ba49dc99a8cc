// Sums over rows without atomics, with the same bits in every run: each block stores the sums of its rows, a
// row of D floats, and a second launch adds these up, always in the same order.
#pragma once

#include "vector_io.cuh"

// Adds the sums of a block's ROWS groups of threads (threadIdx.y) and stores those of the columns first,
// first + 1, …, first + THREADS * VECTOR - 1 below D. Each thread brings those of VECTOR columns.
template <int THREADS, int VECTOR, int ROWS, long long D>
__device__ __forceinline__ void store_column_sums(const float (&sums)[VECTOR], float* partial,
                                                  long long first) {
  constexpr int kColumns = THREADS * VECTOR;
  __shared__ float shared[ROWS][kColumns];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    shared[threadIdx.y][i * THREADS + threadIdx.x] = sums[i];  // apart, so that no two threads share a bank
  }
  __syncthreads();
  for (int c = threadIdx.y * THREADS + threadIdx.x; c < kColumns; c += THREADS * ROWS) {
    float sum = 0.0f;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      sum += shared[r][c % VECTOR * THREADS + c / VECTOR];
    }
    if (first + c < D) {
      partial[first + c] = sum;
    }
  }
}

// The second launch: out[d] = the sum of P rows of partial[P, D], in blocks of COLUMNS columns by LANES rows.
template <int COLUMNS, int LANES, long long D, typename T>
__device__ __forceinline__ void add_partials(const float* partial, T* out, long long P) {
  __shared__ float shared[LANES][COLUMNS];
  const long long d = static_cast<long long>(blockIdx.x) * COLUMNS + threadIdx.x;
  float sum = 0.0f;
  if (d < D) {
#pragma unroll 4
    for (long long p = threadIdx.y; p < P; p += LANES) {
      sum += partial[p * D + d];
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.y < step) {
      shared[threadIdx.y][threadIdx.x] += shared[threadIdx.y + step][threadIdx.x];
    }
  }
  if (threadIdx.y == 0 && d < D) {
    out[d] = from_float<T>(shared[0][threadIdx.x]);
  }
}
