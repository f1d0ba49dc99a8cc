// The types are those of the 64-bit Linux ABI with int64_t as `long long`, which CCCL has under NVRTC.
#pragma once
#include <limits.h>

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int8_t int_least8_t, int_fast8_t;
typedef int16_t int_least16_t, int_fast16_t;
typedef int32_t int_least32_t, int_fast32_t;
typedef int64_t int_least64_t, int_fast64_t;
typedef uint8_t uint_least8_t, uint_fast8_t;
typedef uint16_t uint_least16_t, uint_fast16_t;
typedef uint32_t uint_least32_t, uint_fast32_t;
typedef uint64_t uint_least64_t, uint_fast64_t;
typedef int64_t intptr_t, intmax_t;
typedef uint64_t uintptr_t, uintmax_t;

#ifndef INT32_MAX
#define INT8_MIN SCHAR_MIN
#define INT8_MAX SCHAR_MAX
#define UINT8_MAX UCHAR_MAX
#define INT16_MIN SHRT_MIN
#define INT16_MAX SHRT_MAX
#define UINT16_MAX USHRT_MAX
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN LLONG_MIN
#define INT64_MAX LLONG_MAX
#define UINT64_MAX ULLONG_MAX
#define INTPTR_MIN INT64_MIN
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define INTMAX_MIN INT64_MIN
#define INTMAX_MAX INT64_MAX
#define UINTMAX_MAX UINT64_MAX
#define PTRDIFF_MIN INT64_MIN
#define PTRDIFF_MAX INT64_MAX
#define SIZE_MAX UINT64_MAX
#endif
// Functions and no macros: releases of CCCL define macros of these names in different ways.
#ifndef INT32_C
__host__ __device__ constexpr int8_t INT8_C(int8_t x) { return x; }
__host__ __device__ constexpr int16_t INT16_C(int16_t x) { return x; }
__host__ __device__ constexpr int32_t INT32_C(int32_t x) { return x; }
__host__ __device__ constexpr int64_t INT64_C(int64_t x) { return x; }
__host__ __device__ constexpr uint8_t UINT8_C(uint8_t x) { return x; }
__host__ __device__ constexpr uint16_t UINT16_C(uint16_t x) { return x; }
__host__ __device__ constexpr uint32_t UINT32_C(uint32_t x) { return x; }
__host__ __device__ constexpr uint64_t UINT64_C(uint64_t x) { return x; }
__host__ __device__ constexpr intmax_t INTMAX_C(intmax_t x) { return x; }
__host__ __device__ constexpr uintmax_t UINTMAX_C(uintmax_t x) { return x; }
#endif
