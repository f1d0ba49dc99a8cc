// The online softmax: the maximum of some values and the sum of their exponentials below it, of which two
// combine into one. What torch does holds: values that are all -inf, a NaN or a +inf give NaN for the row.
#pragma once

#include "row_combine.cuh"

__device__ __forceinline__ float negative_infinity() { return __int_as_float(0xff800000); }

// e^(value - maximum) for value <= maximum, below 2^-126 as 0. The difference is taken first: it is small
// where the result counts, however large the values are.
__device__ __forceinline__ float exp_below(float value, float maximum) {
  constexpr float kLog2E = 1.44269504088896340736f;
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"((value - maximum) * kLog2E));
  return result;
}

struct SoftmaxState {
  float maximum;  // -inf of no values; NaN is passed over, and makes the sum NaN
  float sum;

  static __device__ __forceinline__ SoftmaxState none() { return {negative_infinity(), 0.0f}; }

  // What exponentials are taken below. Nothing is below -inf: -inf - -inf would be NaN, where it has to count 0.
  __device__ __forceinline__ float base() const { return maximum == negative_infinity() ? 0.0f : maximum; }

  __device__ __forceinline__ void merge(const SoftmaxState& other) {
    const SoftmaxState both{fmaxf(maximum, other.maximum), 0.0f};
    const float mine = __fmul_rn(sum, exp_below(maximum, both.base()));
    const float its = __fmul_rn(other.sum, exp_below(other.maximum, both.base()));
    maximum = both.maximum;
    sum = __fadd_rn(mine, its);
  }
  __device__ __forceinline__ SoftmaxState of_lane(int step) const {
    return {exchange(maximum, step), exchange(sum, step)};
  }
};
