// Asynchronous copies from global to shared memory that put zeros where there is nothing to read (sm_80).
// Groups of them are closed and awaited as in vector_io.cuh.
#pragma once

// The address that instructions on shared memory take.
__device__ __forceinline__ unsigned int shared_address(const void* shared) {
  return static_cast<unsigned int>(__cvta_generic_to_shared(shared));
}

// Starts a copy of BYTES (4, 8 or 16). Where it is not `inside`, `from` is not read and zeros are written.
template <int BYTES>
__device__ __forceinline__ void copy_or_zero_async(unsigned int to, const void* from, bool inside) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async moves 4, 8 or 16 bytes");
  const int bytes = inside ? BYTES : 0;
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(bytes)
                 : "memory");
  }
}

// For elements of 2 bytes, which cp.async does not move one by one.
__device__ __forceinline__ void store_shared(unsigned int to, unsigned short value) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(value) : "memory");
}
