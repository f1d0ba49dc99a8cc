// __nv_fp8_e4m3 (torch's float8_e4m3fn) with what kernels here do with it, without the toolkit's cuda_fp8.h.
#pragma once

struct __nv_fp8_e4m3 {
  unsigned char bits;
};

// Two elements side by side, as mma.sync and its loads move them.
struct alignas(2) E4m3Pair {
  unsigned short bits;
};

// Exact. All ones but the sign is NaN; there is no infinity.
__device__ __forceinline__ float to_float(__nv_fp8_e4m3 value) {
  const unsigned int magnitude = value.bits & 0x7fu;
  if (magnitude == 0x7fu) {
    return __uint_as_float(0x7fc00000u);
  }
  const int exponent = int(magnitude >> 3), fraction = int(magnitude & 7u);
  const float result =
      exponent == 0 ? float(fraction) * 0.001953125f : ldexpf(float(8 + fraction), exponent - 10);
  return (value.bits & 0x80u) != 0 ? -result : result;
}
