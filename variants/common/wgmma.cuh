// Matrix products of a warpgroup (wgmma m64nNk16, sm_90a): four warps, the first of them a multiple of four, add
// a 64 x N tile of float32 in their registers. Both operands lie in shared memory.
//
// Lane l of warp w holds of the result the elements (16 * w + l / 4 + {0, 8}, 8 * j + l % 4 * 2 + {0, 1}) as
// result[j][0 .. 3].
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

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

#define CUBIND_WGMMA_REGISTERS(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define CUBIND_WGMMA_32(j)                                                                         \
  CUBIND_WGMMA_REGISTERS(j), CUBIND_WGMMA_REGISTERS(j + 1), CUBIND_WGMMA_REGISTERS(j + 2),         \
      CUBIND_WGMMA_REGISTERS(j + 3), CUBIND_WGMMA_REGISTERS(j + 4), CUBIND_WGMMA_REGISTERS(j + 5), \
      CUBIND_WGMMA_REGISTERS(j + 6), CUBIND_WGMMA_REGISTERS(j + 7)
#define CUBIND_WGMMA_LIST(...) __VA_ARGS__
#define CUBIND_WGMMA_NAMES_0                                               \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CUBIND_WGMMA_NAMES_1                                                         \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define CUBIND_WGMMA_NAMES_2                                                         \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define CUBIND_WGMMA_NAMES_3                                                                     \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// One instruction for both element types; the last four operands are the two descriptors and whether the tiles
// have one row for each k.
#define CUBIND_WGMMA(N, NAMES, REGISTERS, LEFT, RIGHT, LEFT_TURNED, RIGHT_TURNED)                   \
  if constexpr (sizeof(d) == N / 8 * 16) {                                                          \
    if constexpr (kHalf) {                                                                          \
      asm volatile("{.reg .pred add; setp.eq.u32 add, 0, 0; wgmma.mma_async.sync.aligned.m64n" #N   \
                   "k16.f32.f16.f16 {" NAMES "}, " LEFT ", " RIGHT ", add, 1, 1, " LEFT_TURNED      \
                   ", " RIGHT_TURNED ";}"                                                           \
                   : REGISTERS                                                                      \
                   : "l"(left), "l"(right), "n"(LEFT_ALONG_K ? 0 : 1), "n"(RIGHT_ALONG_K ? 0 : 1)); \
    } else {                                                                                        \
      asm volatile("{.reg .pred add; setp.eq.u32 add, 0, 0; wgmma.mma_async.sync.aligned.m64n" #N   \
                   "k16.f32.bf16.bf16 {" NAMES "}, " LEFT ", " RIGHT ", add, 1, 1, " LEFT_TURNED    \
                   ", " RIGHT_TURNED ";}"                                                           \
                   : REGISTERS                                                                      \
                   : "l"(left), "l"(right), "n"(LEFT_ALONG_K ? 0 : 1), "n"(RIGHT_ALONG_K ? 0 : 1)); \
    }                                                                                               \
  }

template <typename T>
inline constexpr bool kIsHalf = false;
template <>
inline constexpr bool kIsHalf<__half> = true;

// d += left * right over 16 values of k, for N = 8 * N8 columns: 64, 128, 192 or 256. Runs on while the thread
// does, in a group.
template <typename T, bool LEFT_ALONG_K, bool RIGHT_ALONG_K, int N8>
__device__ __forceinline__ void wgmma(float (&d)[N8][4], unsigned long long left, unsigned long long right) {
  constexpr bool kHalf = kIsHalf<T>;
  static_assert(N8 == 8 || N8 == 16 || N8 == 24 || N8 == 32, "64, 128, 192 or 256 columns");
  CUBIND_WGMMA(64, CUBIND_WGMMA_NAMES_0, CUBIND_WGMMA_LIST(CUBIND_WGMMA_32(0)), "%32", "%33", "%34", "%35")
  CUBIND_WGMMA(128, CUBIND_WGMMA_NAMES_0 ", " CUBIND_WGMMA_NAMES_1,
               CUBIND_WGMMA_LIST(CUBIND_WGMMA_32(0), CUBIND_WGMMA_32(8)), "%64", "%65", "%66", "%67")
  CUBIND_WGMMA(192, CUBIND_WGMMA_NAMES_0 ", " CUBIND_WGMMA_NAMES_1 ", " CUBIND_WGMMA_NAMES_2,
               CUBIND_WGMMA_LIST(CUBIND_WGMMA_32(0), CUBIND_WGMMA_32(8), CUBIND_WGMMA_32(16)), "%96", "%97",
               "%98", "%99")
  CUBIND_WGMMA(
      256, CUBIND_WGMMA_NAMES_0 ", " CUBIND_WGMMA_NAMES_1 ", " CUBIND_WGMMA_NAMES_2 ", " CUBIND_WGMMA_NAMES_3,
      CUBIND_WGMMA_LIST(CUBIND_WGMMA_32(0), CUBIND_WGMMA_32(8), CUBIND_WGMMA_32(16), CUBIND_WGMMA_32(24)),
      "%128", "%129", "%130", "%131")
}

#undef CUBIND_WGMMA
#undef CUBIND_WGMMA_REGISTERS
#undef CUBIND_WGMMA_32
#undef CUBIND_WGMMA_LIST
#undef CUBIND_WGMMA_NAMES_0
#undef CUBIND_WGMMA_NAMES_1
#undef CUBIND_WGMMA_NAMES_2
#undef CUBIND_WGMMA_NAMES_3
