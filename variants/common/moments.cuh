// Mean and squared deviations of some values, of which two combine into one (Chan, Golub and LeVeque): nothing
// is lost where the mean is large beside the deviations, as it is in a sum of squares.
#pragma once

#include "row_combine.cuh"

struct Moments {
  float count;
  float mean;
  float deviations;  // the sum of (value - mean)^2

  static __device__ __forceinline__ Moments none() { return {0.0f, 0.0f, 0.0f}; }

  // Both terms of the mean, and so its bits, are the same whichever of the two calls.
  __device__ __forceinline__ void merge(const Moments& other) {
    const float total = count + other.count;
    const float share = total > 0.0f ? 1.0f / total : 0.0f;
    const float apart = other.mean - mean;
    mean = 0.5f * __fadd_rn(mean, other.mean) + __fmul_rn(apart, 0.5f * (other.count - count) * share);
    deviations = __fadd_rn(deviations, other.deviations) +
                 __fmul_rn(__fmul_rn(apart, apart), count * other.count * share);
    count = total;
  }
  __device__ __forceinline__ Moments of_lane(int step) const {
    return {exchange(count, step), exchange(mean, step), exchange(deviations, step)};
  }
};

// Of the first `count` of COUNT values, which are in registers; the others are 0.
template <int COUNT>
__device__ __forceinline__ Moments moments_of(const float (&values)[COUNT], int count) {
  Moments moments{float(count), 0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    moments.mean += values[i];
  }
  moments.mean *= count > 0 ? 1.0f / float(count) : 0.0f;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const float apart = i < count ? values[i] - moments.mean : 0.0f;
    moments.deviations += apart * apart;
  }
  return moments;
}
