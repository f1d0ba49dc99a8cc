// Rows that are read twice, in two passes: the caches are told to keep what the first loads, and that the second is
// the last to want it. Then what others have left in L2 and still has to go to memory does not make room for rows that
// are done with.
#pragma once

#include "vector_io.cuh"

enum RowCache { kKeptThenDropped = 3 };  // beside the values of CacheHint; stores are plain

template <int CACHE>
constexpr int kStoresOf = CACHE == kKeptThenDropped ? int(kCacheDefault) : CACHE;

// For L2, where data is to stay until it is read again. Without createpolicy (before sm_80) the hint is dropped.
__device__ __forceinline__ unsigned long long evict_last_policy() {
  unsigned long long policy = 0;
#if __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}

// Volatile, so that the passes stay in order.
template <bool AGAIN>
__device__ __forceinline__ void load_kept(uint4& to, const uint4* from) {
#if __CUDA_ARCH__ < 800
  to = *from;
#else
  if constexpr (AGAIN) {
    asm volatile("ld.global.L1::evict_first.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w)
                 : "l"(from), "l"(evict_first_policy()));
  } else {
    asm volatile("ld.global.L1::evict_last.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w)
                 : "l"(from), "l"(evict_last_policy()));
  }
#endif
}
template <bool AGAIN>
__device__ __forceinline__ void load_kept(uint2& to, const uint2* from) {
#if __CUDA_ARCH__ < 800
  to = *from;
#else
  if constexpr (AGAIN) {
    asm volatile("ld.global.L1::evict_first.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
                 : "=r"(to.x), "=r"(to.y)
                 : "l"(from), "l"(evict_first_policy()));
  } else {
    asm volatile("ld.global.L1::evict_last.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
                 : "=r"(to.x), "=r"(to.y)
                 : "l"(from), "l"(evict_last_policy()));
  }
#endif
}

// With kKeptThenDropped vectors are 8 or 16 bytes. Otherwise CACHE is of the second pass alone.
template <int CACHE, bool AGAIN, typename T, int COUNT>
__device__ __forceinline__ void load_twice(Vector<T, COUNT>& to, const T* from) {
  if constexpr (CACHE == kKeptThenDropped) {
    load_kept<AGAIN>(to.raw, reinterpret_cast<const typename Vector<T, COUNT>::Raw*>(from));
  } else {
    load<AGAIN ? CACHE : int(kCacheDefault)>(to, from);
  }
}
