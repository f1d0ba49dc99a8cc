// Activation functions with their derivatives, in float32.
#pragma once

enum Activation { kNone = 0, kGelu = 1, kSilu = 2, kGeluTanh = 3 };

struct Activated {
  float value, slope;
};

__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

// x * sigmoid(x).
__device__ __forceinline__ Activated silu(float x) {
  const float s = sigmoid(x);
  return {x * s, s * (1.0f + x * (1.0f - s))};
}

// x * P with P the normal distribution.
__device__ __forceinline__ Activated gelu(float x) {
  const float below = 0.5f * (1.0f + erff(x * 0.70710678f));
  return {x * below, below + x * 0.39894228f * __expf(-0.5f * x * x)};
}

// x * (1 + tanh(u)) / 2, u = sqrt(2 / pi) * (x + 0.044715 * x^3); that is x * sigmoid(2 * u).
__device__ __forceinline__ Activated gelu_tanh(float x) {
  constexpr float kTwice = 1.59576912f;
  const float square = x * x;
  const float s = sigmoid(kTwice * x * (1.0f + 0.044715f * square));
  return {x * s, s + x * s * (1.0f - s) * kTwice * (1.0f + 0.134145f * square)};
}

template <int ACTIVATION>
__device__ __forceinline__ Activated activated(float x) {
  if constexpr (ACTIVATION == kGelu) {
    return gelu(x);
  } else if constexpr (ACTIVATION == kSilu) {
    return silu(x);
  } else if constexpr (ACTIVATION == kGeluTanh) {
    return gelu_tanh(x);
  } else {
    return {x, 1.0f};
  }
}
