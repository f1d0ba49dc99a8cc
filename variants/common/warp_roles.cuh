// What lets the warps of a block do different work: barriers with phases in shared memory (mbarrier), meetings of
// some of the threads (bar), and registers that one warpgroup gives up for another (setmaxnreg). sm_90.
#pragma once

// A barrier of 8 bytes in shared memory, of which each phase ends when `count` arrivals were made. One thread
// initializes it, a __syncthreads follows.
__device__ __forceinline__ void initialize_barrier(unsigned int barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void arrive(unsigned int barrier) {
  asm volatile("{.reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0];}" ::"r"(barrier) : "memory");
}

// Arrives as soon as the copies are done that this thread has started (guarded_copy.cuh).
__device__ __forceinline__ void arrive_when_copied(unsigned int barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// Waits for the end of the phase of this parity: the first phase has parity 0, and the one before it has ended.
__device__ __forceinline__ void wait_for_phase(unsigned int barrier, int parity) {
  unsigned int ended;
  do {
    asm volatile(
        "{.reg .pred ended; mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2; selp.u32 %0, 1, 0, "
        "ended;}"
        : "=r"(ended)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (ended == 0);
}

// A meeting (1 to 15) of a number of threads, a multiple of 32. Who only announces itself does not wait.
__device__ __forceinline__ void meet(int meeting, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(meeting), "r"(threads) : "memory");
}
__device__ __forceinline__ void announce(int meeting, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(meeting), "r"(threads) : "memory");
}

// By all threads of a warpgroup: the registers that each of them may use from now on, a multiple of 8.
template <int REGISTERS>
__device__ __forceinline__ void give_up_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
