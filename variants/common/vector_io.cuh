// Vectors of elements moved by one instruction, with cache hints, and the conversion of whole ones.
//
// A Vector<T, COUNT> is COUNT consecutive elements of float, __half or __nv_bfloat16, 2, 4, 8 or 16 bytes in
// all, kept as they lie in memory. Its address must be a multiple of its size.
#pragma once

#include "half_types.cuh"

// What a kernel says to the caches about data that it reads once and writes once.
enum CacheHint {
  kCacheDefault = 0,
  kCacheStreaming = 1,       // loads and stores are evicted first (ld.cs, st.cs)
  kCacheStreamingStores = 2  // stores are evicted first
};

template <int BYTES>
struct Word;
template <>
struct Word<2> {
  using Type = unsigned short;
};
template <>
struct Word<4> {
  using Type = unsigned int;
};
template <>
struct Word<8> {
  using Type = uint2;
};
template <>
struct Word<16> {
  using Type = uint4;
};

__device__ __forceinline__ float to_float(float value) { return value; }

template <>
__device__ __forceinline__ float from_float<float>(float value) {
  return value;
}

// The elements of one 32-bit word. They are taken apart as numbers: arrays of 16-bit elements land in local
// memory.
template <typename T>
struct Words;
template <>
struct Words<float> {
  static __device__ __forceinline__ float element(unsigned int word, int) { return __uint_as_float(word); }
};
template <>
struct Words<__half> {
  static __device__ __forceinline__ float element(unsigned int word, int index) {
    return to_float(__half{static_cast<unsigned short>(index == 0 ? word : word >> 16)});
  }
};
template <>
struct Words<__nv_bfloat16> {
  static __device__ __forceinline__ float element(unsigned int word, int index) {
    return __uint_as_float(index == 0 ? word << 16 : word & 0xffff0000u);
  }
};

template <typename T, int COUNT>
struct Vector {
  static constexpr int kBytes = COUNT * int(sizeof(T));
  static constexpr int kPerWord = 4 / int(sizeof(T));
  using Raw = typename Word<kBytes>::Type;
  union {
    Raw raw;
    unsigned int words[(kBytes + 3) / 4];
    T single;  // where COUNT is 1
  };

  __device__ __forceinline__ float element(int index) const {
    if constexpr (COUNT == 1) {
      return to_float(single);
    } else {
      return Words<T>::element(words[index / kPerWord], index % kPerWord);
    }
  }

  // The values rounded to T, two by one instruction where the type has one.
  __device__ __forceinline__ void round_from(const float (&values)[COUNT]) {
    if constexpr (COUNT == 1) {
      single = from_float<T>(values[0]);
    } else if constexpr (kPerWord == 1) {
#pragma unroll
      for (int i = 0; i < COUNT; ++i) words[i] = __float_as_uint(values[i]);
    } else {
#pragma unroll
      for (int i = 0; i < COUNT; i += 2) words[i / 2] = rounded_pair<T>(values[i], values[i + 1]);
    }
  }
};

// An L2 policy for data that is not read again. Without createpolicy (before sm_80) the hint is dropped.
__device__ __forceinline__ unsigned long long evict_first_policy() {
  unsigned long long policy = 0;
#if __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}

template <int CACHE, typename T, int COUNT>
__device__ __forceinline__ void load(Vector<T, COUNT>& to, const T* from) {
  const auto* address = reinterpret_cast<const typename Vector<T, COUNT>::Raw*>(from);
  to.raw = CACHE == kCacheStreaming ? __ldcs(address) : *address;
}

// For data that no thread writes while the kernel runs: weights, shared by all rows.
template <typename T, int COUNT>
__device__ __forceinline__ void load_constant(Vector<T, COUNT>& to, const T* from) {
  to.raw = __ldg(reinterpret_cast<const typename Vector<T, COUNT>::Raw*>(from));
}

template <int CACHE, typename T, int COUNT>
__device__ __forceinline__ void store(T* to, const Vector<T, COUNT>& from) {
  auto* address = reinterpret_cast<typename Vector<T, COUNT>::Raw*>(to);
  if constexpr (CACHE == kCacheDefault) {
    *address = from.raw;
  } else {
    __stcs(address, from.raw);
  }
}

// Starts a copy of one vector (4, 8 or 16 bytes) to shared memory. The copy is seen after wait_for_copies, by
// the thread that started it.
template <int CACHE, typename T, int COUNT>
__device__ __forceinline__ void copy_async(void* shared, const T* from) {
  constexpr int kBytes = COUNT * int(sizeof(T));
  constexpr bool kPlain = CACHE != kCacheStreaming;
  static_assert(kBytes >= 4, "cp.async moves 4, 8 or 16 bytes");
#if __CUDA_ARCH__ >= 800
  const unsigned int to = static_cast<unsigned int>(__cvta_generic_to_shared(shared));
  if constexpr (kPlain && kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  } else if constexpr (kPlain) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(kBytes) : "memory");
  } else if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "l"(evict_first_policy())
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                 "n"(kBytes), "l"(evict_first_policy())
                 : "memory");
  }
#else
  Vector<T, COUNT> vector;
  load<CACHE>(vector, from);
  *static_cast<typename Vector<T, COUNT>::Raw*>(shared) = vector.raw;
#endif
}

// Closes the group of the copies started since the last call; a group may be empty.
__device__ __forceinline__ void close_copy_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most PENDING of this thread's copy groups, the newest, are unfinished.
template <int PENDING>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}
