// Which keys a query sees, what becomes of a score before the softmax, and which weights dropout keeps.
#pragma once

#include "dropout.cuh"

// Query i of a sequence stands at key i + diagonal, diagonal = keys - queries. It sees the keys of the sequence from
// LEFT - 1 before that one to RIGHT - 1 behind it; 0 means no bound on that side. Causal is RIGHT = 1.
// Tiles compute with these by themselves: their functions within functions change the order in which the compiler
// makes code of everything else, and that code was up to 4 % slower on an H200.
template <int LEFT, int RIGHT>
struct Window {
  static constexpr int kLeft = LEFT, kRight = RIGHT;
};

// SOFT_CAP c != 0: scores become c * tanh(score / c). A tile then holds the tangent alone, and the factor c is part of
// its scale.
template <int SOFT_CAP>
struct Scores {
  static constexpr bool kCapped = SOFT_CAP != 0;

  // Of a product's scale: what tiles' scores are multiplied with in the exponents of 2, and products before
  // their tangent is taken.
  static __device__ __forceinline__ float exponent_scale(float scale) {
    return (kCapped ? float(SOFT_CAP) : scale) * 1.44269504088896f;
  }
  static __device__ __forceinline__ float tangent_scale(float scale) {
    return scale * (2 * 1.44269504088896f / (kCapped ? SOFT_CAP : 1));
  }

  // Products become scores: tanh(x) = 1 - 2 / (1 + e^2x), whose error is that of float32 where x is small.
  template <int N8>
  static __device__ __forceinline__ void cap(float (&products)[N8][4], float scale) {
    if constexpr (kCapped) {
#pragma unroll
      for (int i = 0; i < N8 * 4; ++i) {
        float& x = products[i / 4][i % 4];
        float inverse;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1.0f + exp2_approximate(x * scale)));
        x = fmaf(-2.0f, inverse, 1.0f);
      }
    }
  }

  // The derivative of a score by its product, without the factor of the scale; 0 of one that is masked.
  static __device__ __forceinline__ float slope(float score) {
    return kCapped ? fmaxf(fmaf(-score, score, 1.0f), 0.0f) : 1.0f;
  }
};
