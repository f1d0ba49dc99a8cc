// Softmax of rows whose scores come tile by tile (online softmax), in float32.
//
// A thread has part in two rows of a tile, lane / 4 and the one eight below, as mma.cuh and wgmma.cuh hold a
// result: scores[j][0, 1] are of the first, scores[j][2, 3] of the second, at the columns 8 * j + lane % 4 * 2 +
// {0, 1}. Four lanes share a row.
#pragma once

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

__device__ __forceinline__ float exp2_approximate(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// Takes away the scores of the columns from end[row] on, counted from this thread's first column.
template <int N8>
__device__ __forceinline__ void mask_scores(float (&scores)[N8][4], const int (&end)[2]) {
#pragma unroll
  for (int j = 0; j < N8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (j * 8 + e % 2 >= end[e / 2]) {
        scores[j][e] = minus_infinity();
      }
    }
  }
}

// The same for the columns before begin[row].
template <int N8>
__device__ __forceinline__ void mask_scores_before(float (&scores)[N8][4], const int (&begin)[2]) {
#pragma unroll
  for (int i = 0; i < N8 * 4; ++i) {
    if (i / 4 * 8 + i % 2 < begin[i % 4 / 2]) {
      scores[i / 4][i % 4] = minus_infinity();
    }
  }
}

struct OnlineSoftmax {
  float maximum[2] = {minus_infinity(), minus_infinity()};  // of the scores so far
  float sum[2] = {0.0f, 0.0f};                              // of this thread's weights

  // Turns a tile's scores into weights 2^(scale * (score - maximum)), and says by which factor what was summed
  // with the weights before is to be multiplied.
  template <int N8>
  __device__ __forceinline__ void update(float (&scores)[N8][4], float scale, float (&factor)[2]) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float highest = maximum[row];
#pragma unroll
      for (int j = 0; j < N8; ++j) {
        highest = fmaxf(highest, fmaxf(scores[j][row * 2], scores[j][row * 2 + 1]));
      }
      highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
      highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
      const float shift =
          highest == minus_infinity() ? 0.0f : highest * scale;  // nothing seen: all weights 0
      factor[row] = exp2_approximate(maximum[row] * scale - shift);
      maximum[row] = highest;
      float added = 0.0f;
#pragma unroll
      for (int j = 0; j < N8; ++j) {
#pragma unroll
        for (int e = row * 2; e < row * 2 + 2; ++e) {
          scores[j][e] = exp2_approximate(fmaf(scores[j][e], scale, -shift));
          added += scores[j][e];
        }
      }
      sum[row] = sum[row] * factor[row] + added;
    }
  }

  // Ends the rows: by which factor their weighted sums become means, and the natural logarithm of the summed
  // exponentials. A row that saw nothing has the mean 0 and the logarithm -infinity.
  __device__ __forceinline__ void finish(float scale, float (&factor)[2], float (&logarithm)[2]) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float total = sum[row];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      factor[row] = total == 0.0f ? 0.0f : 1.0f / total;
      logarithm[row] =
          total == 0.0f ? minus_infinity() : maximum[row] * scale * 0.693147180559945f + logf(total);
    }
  }
};

template <int N8>
__device__ __forceinline__ void scale_rows(float (&values)[N8][4], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < N8 * 4; ++i) {
    values[i / 4][i % 4] *= factor[i % 4 / 2];
  }
}
