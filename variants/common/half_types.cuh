// __half and __nv_bfloat16 with what kernels here do with them: they are stored, and converted to and from
// float.
//
// The toolkit's cuda_fp16.h and cuda_bf16.h take a sixth of the time in which a kernel is compiled. These types
// have their names and layouts, so that entries are called as with the toolkit's, and their conversions, so that
// the code is the same. Where the toolkit's headers come after this one, the compiler reports a redefinition.
#pragma once

#if defined(__CUDA_FP16_TYPES_EXIST__) || defined(__CUDA_BF16_TYPES_EXIST__)
#error "half_types.cuh defines the types of the toolkit's cuda_fp16.h and cuda_bf16.h: include either"
#endif

struct alignas(2) __half {
  unsigned short bits;
};

struct alignas(2) __nv_bfloat16 {
  unsigned short bits;
};

__device__ __forceinline__ float to_float(__half value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}

__device__ __forceinline__ float to_float(__nv_bfloat16 value) {
  float result;
#if __CUDA_ARCH__ >= 900
  asm("cvt.f32.bf16 %0, %1;" : "=f"(result) : "h"(value.bits));
#else
  asm("mov.b32 %0, {0, %1};" : "=f"(result) : "h"(value.bits));
#endif
  return result;
}

// Rounded to the nearest, of two to the even one.
template <typename T>
__device__ __forceinline__ T from_float(float value);

template <>
__device__ __forceinline__ __half from_float<__half>(float value) {
  __half result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}

template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  __nv_bfloat16 result;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
#else
  const unsigned int bits = __float_as_uint(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  result.bits = is_nan ? 0x7fff : static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
  return result;
}

// Two values rounded to T in one word, `low` in its lower half.
template <typename T>
__device__ __forceinline__ unsigned int rounded_pair(float low, float high) {
  return from_float<T>(low).bits | static_cast<unsigned int>(from_float<T>(high).bits) << 16;
}

#if __CUDA_ARCH__ >= 800
template <>
__device__ __forceinline__ unsigned int rounded_pair<__half>(float low, float high) {
  unsigned int pair;
  asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(low), "f"(high));
  return pair;
}

template <>
__device__ __forceinline__ unsigned int rounded_pair<__nv_bfloat16>(float low, float high) {
  unsigned int pair;
  asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(low), "f"(high));
  return pair;
}
#endif
