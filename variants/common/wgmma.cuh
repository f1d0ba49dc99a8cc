// Matrix products of a warpgroup (wgmma m64nNk16, sm_90a): four warps, the first of them a multiple of four, add
// a 64 x N tile of float32 in their registers. Both operands lie in shared memory.
//
// Lane l of warp w holds of the result the elements (16 * w + l / 4 + {0, 8}, 8 * j + l % 4 * 2 + {0, 1}) as
// result[j][0 .. 3].
#pragma once

#include "half_types.cuh"

// Makes what this thread wrote to shared memory, and what it copied there and waited for, seen by wgmma; a
// barrier follows.
__device__ __forceinline__ void publish_to_wgmma() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Before the first product of a batch, and whenever registers of the result were touched in between.
__device__ __forceinline__ void open_wgmma_group() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void close_wgmma_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most PENDING of the groups, the newest, are unfinished.
template <int PENDING>
__device__ __forceinline__ void wait_for_wgmma() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps reads and writes of a result where they stand in the source: the compiler does not know that a product
// that runs uses these registers. Before the first group, and after the wait for the last.
template <int N8>
__device__ __forceinline__ void hold_wgmma_result(float (&d)[N8][4]) {
#pragma unroll
  for (int i = 0; i < N8 * 4; ++i) {
    asm volatile("" : "+f"(d[i / 4][i % 4])::"memory");
  }
}

// An operand in a SwizzledTile of 128-byte panels that begins at a multiple of 1024 bytes. Where the tile's rows
// run along k, `panel_bytes` does not count; else it is the way to the next 64 rows of the operand.
__device__ __forceinline__ unsigned long long wgmma_operand(unsigned int address, int panel_bytes) {
  constexpr unsigned long long kSwizzled128 = 1ull << 62, kEightRows = (8 * 128 >> 4);
  return kSwizzled128 | kEightRows << 32 | static_cast<unsigned long long>(panel_bytes >> 4) << 16 |
         (address & 0x3ffff) >> 4;
}

struct __nv_fp8_e4m3;  // e4m3_types.cuh

template <typename T>
inline constexpr bool kIsHalf = false;
template <>
inline constexpr bool kIsHalf<__half> = true;
template <typename T>
inline constexpr bool kIsE4m3 = false;
template <>
inline constexpr bool kIsE4m3<__nv_fp8_e4m3> = true;

// The registers of 16 or more columns of a result, and what an instruction calls them.
#define CUBIND_COLUMNS_16(j)                                                                        \
  "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3]), "+f"(d[j + 1][0]), "+f"(d[j + 1][1]), \
      "+f"(d[j + 1][2]), "+f"(d[j + 1][3])
#define CUBIND_COLUMNS_64 \
  CUBIND_COLUMNS_16(0), CUBIND_COLUMNS_16(2), CUBIND_COLUMNS_16(4), CUBIND_COLUMNS_16(6)
#define CUBIND_COLUMNS_80 CUBIND_COLUMNS_64, CUBIND_COLUMNS_16(8)
#define CUBIND_COLUMNS_96 CUBIND_COLUMNS_80, CUBIND_COLUMNS_16(10)
#define CUBIND_COLUMNS_112 CUBIND_COLUMNS_96, CUBIND_COLUMNS_16(12)
#define CUBIND_COLUMNS_128 CUBIND_COLUMNS_112, CUBIND_COLUMNS_16(14)
#define CUBIND_COLUMNS_144 CUBIND_COLUMNS_128, CUBIND_COLUMNS_16(16)
#define CUBIND_COLUMNS_160 CUBIND_COLUMNS_144, CUBIND_COLUMNS_16(18)
#define CUBIND_COLUMNS_176 CUBIND_COLUMNS_160, CUBIND_COLUMNS_16(20)
#define CUBIND_COLUMNS_192 CUBIND_COLUMNS_176, CUBIND_COLUMNS_16(22)
#define CUBIND_COLUMNS_256                                                                 \
  CUBIND_COLUMNS_192, CUBIND_COLUMNS_16(24), CUBIND_COLUMNS_16(26), CUBIND_COLUMNS_16(28), \
      CUBIND_COLUMNS_16(30)
#define CUBIND_NAMES_64                                                    \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CUBIND_NAMES_80 CUBIND_NAMES_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define CUBIND_NAMES_96 CUBIND_NAMES_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define CUBIND_NAMES_112 CUBIND_NAMES_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define CUBIND_NAMES_128 CUBIND_NAMES_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define CUBIND_NAMES_144 CUBIND_NAMES_128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define CUBIND_NAMES_160 CUBIND_NAMES_144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define CUBIND_NAMES_176 CUBIND_NAMES_160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define CUBIND_NAMES_192 CUBIND_NAMES_176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define CUBIND_NAMES_256                                                                           \
  CUBIND_NAMES_192                                                                                 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// One instruction for both element types. The numbers are those of the operands after the result's: the left
// operand, the right one, whether to add, and whether the tiles in shared memory have one row for each k.
#define CUBIND_WGMMA(N, TYPES, OPERANDS, ADDED, ...)                                                    \
  asm volatile("{.reg .pred add; setp.ne.b32 add, %" #ADDED ", 0; wgmma.mma_async.sync.aligned.m64n" #N \
               "k16.f32." TYPES " {" CUBIND_NAMES_##N "}, " OPERANDS ";}"                               \
               : CUBIND_COLUMNS_##N                                                                     \
               : __VA_ARGS__)
#define CUBIND_WGMMA_SHARED(N, LEFT, RIGHT, ADDED, TURNED, RIGHT_TURNED)                                     \
  if constexpr (sizeof(d) == N / 8 * 16 && kIsHalf<T>) {                                                     \
    CUBIND_WGMMA(N, "f16.f16", "%" #LEFT ", %" #RIGHT ", add, 1, 1, %" #TURNED ", %" #RIGHT_TURNED, ADDED,   \
                 "l"(left), "l"(right), "n"(ADD), "n"(LEFT_ALONG_K ? 0 : 1), "n"(RIGHT_ALONG_K ? 0 : 1));    \
  } else if constexpr (sizeof(d) == N / 8 * 16) {                                                            \
    CUBIND_WGMMA(N, "bf16.bf16", "%" #LEFT ", %" #RIGHT ", add, 1, 1, %" #TURNED ", %" #RIGHT_TURNED, ADDED, \
                 "l"(left), "l"(right), "n"(ADD), "n"(LEFT_ALONG_K ? 0 : 1), "n"(RIGHT_ALONG_K ? 0 : 1));    \
  }
#define CUBIND_WGMMA_REGISTERS(N, A0, A1, A2, A3, RIGHT, ADDED, TURNED)                                \
  if constexpr (sizeof(d) == N / 8 * 16 && kIsHalf<T>) {                                               \
    CUBIND_WGMMA(N, "f16.f16",                                                                         \
                 "{%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #RIGHT ", add, 1, 1, %" #TURNED, ADDED, \
                 "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "n"(ADD),         \
                 "n"(RIGHT_ALONG_K ? 0 : 1));                                                          \
  } else if constexpr (sizeof(d) == N / 8 * 16) {                                                      \
    CUBIND_WGMMA(N, "bf16.bf16",                                                                       \
                 "{%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #RIGHT ", add, 1, 1, %" #TURNED, ADDED, \
                 "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "n"(ADD),         \
                 "n"(RIGHT_ALONG_K ? 0 : 1));                                                          \
  }

// The same for e4m3, over 32 values of k; both tiles' rows run along k.
#define CUBIND_WGMMA_E4M3(N, LEFT, RIGHT, ADDED)                                                          \
  if constexpr (sizeof(d) == N / 8 * 16) {                                                                \
    asm volatile("{.reg .pred add; setp.ne.b32 add, %" #ADDED ", 0; wgmma.mma_async.sync.aligned.m64n" #N \
                 "k32.f32.e4m3.e4m3 {" CUBIND_NAMES_##N "}, %" #LEFT ", %" #RIGHT ", add, 1, 1;}"         \
                 : CUBIND_COLUMNS_##N                                                                     \
                 : "l"(left), "l"(right), "n"(ADD));                                                      \
  }

// d = left * right over 16 values of k, for N = 8 * N8 columns, or d += where ADD is 1. Runs on while the thread
// does, in a group.
template <typename T, bool LEFT_ALONG_K, bool RIGHT_ALONG_K, int ADD = 1, int N8>
__device__ __forceinline__ void wgmma(float (&d)[N8][4], unsigned long long left, unsigned long long right) {
  static_assert((N8 % 2 == 0 && N8 >= 8 && N8 <= 24) || N8 == 32, "64 to 192 columns by 16, or 256");
  if constexpr (kIsE4m3<T>) {
    static_assert(LEFT_ALONG_K && RIGHT_ALONG_K && (N8 == 16 || N8 == 32), "128 or 256 columns");
    CUBIND_WGMMA_E4M3(128, 64, 65, 66)
    CUBIND_WGMMA_E4M3(256, 128, 129, 130)
    return;
  }
  CUBIND_WGMMA_SHARED(64, 32, 33, 34, 35, 36)
  CUBIND_WGMMA_SHARED(80, 40, 41, 42, 43, 44)
  CUBIND_WGMMA_SHARED(96, 48, 49, 50, 51, 52)
  CUBIND_WGMMA_SHARED(112, 56, 57, 58, 59, 60)
  CUBIND_WGMMA_SHARED(128, 64, 65, 66, 67, 68)
  CUBIND_WGMMA_SHARED(144, 72, 73, 74, 75, 76)
  CUBIND_WGMMA_SHARED(160, 80, 81, 82, 83, 84)
  CUBIND_WGMMA_SHARED(176, 88, 89, 90, 91, 92)
  CUBIND_WGMMA_SHARED(192, 96, 97, 98, 99, 100)
  CUBIND_WGMMA_SHARED(256, 128, 129, 130, 131, 132)
}

// The same with the left operand in registers: of its 64 x 16 elements lane l of warp w holds those of row
// 16 * w + l / 4 + {0, 8} (left[0, 2] and left[1, 3]) and columns l % 4 * 2 + {0, 1} (left[0, 1]), and those 8
// columns on. They stay as they are until the product is waited for.
template <typename T, bool RIGHT_ALONG_K, int ADD = 1, int N8>
__device__ __forceinline__ void wgmma(float (&d)[N8][4], const unsigned int (&left)[4],
                                      unsigned long long right) {
  static_assert(N8 == 8 || N8 == 16, "64 or 128 columns");
  CUBIND_WGMMA_REGISTERS(64, 32, 33, 34, 35, 36, 37, 38)
  CUBIND_WGMMA_REGISTERS(128, 64, 65, 66, 67, 68, 69, 70)
}

#undef CUBIND_WGMMA_REGISTERS
#undef CUBIND_WGMMA_SHARED
#undef CUBIND_WGMMA_E4M3
#undef CUBIND_WGMMA
#undef CUBIND_COLUMNS_16
#undef CUBIND_COLUMNS_64
#undef CUBIND_COLUMNS_80
#undef CUBIND_COLUMNS_96
#undef CUBIND_COLUMNS_112
#undef CUBIND_COLUMNS_128
#undef CUBIND_COLUMNS_144
#undef CUBIND_COLUMNS_160
#undef CUBIND_COLUMNS_176
#undef CUBIND_COLUMNS_192
#undef CUBIND_COLUMNS_256
#undef CUBIND_NAMES_64
#undef CUBIND_NAMES_80
#undef CUBIND_NAMES_96
#undef CUBIND_NAMES_112
#undef CUBIND_NAMES_128
#undef CUBIND_NAMES_144
#undef CUBIND_NAMES_160
#undef CUBIND_NAMES_176
#undef CUBIND_NAMES_192
#undef CUBIND_NAMES_256
