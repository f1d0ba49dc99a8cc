// Sums over the THREADS threads (a power of two, at least one warp) that share a row. A block holds GROUPS
// such groups (at most 16), group g being the threads with threadIdx.y == g and THREADS == blockDim.x.
#pragma once

template <int THREADS, int GROUPS, int COUNT = 1>
struct RowReduce {
  static_assert(THREADS >= 32 && (THREADS & (THREADS - 1)) == 0, "a power of two of at least one warp");
  static constexpr int kWarps = THREADS / 32;

  // Partial sums of one group. Two sets take turns, so that one barrier a call is enough: a thread that is a
  // whole call ahead writes the set that nobody reads any more.
  struct Scratch {
    float partial[2][COUNT][kWarps];
  };

  // Replaces each of COUNT values by its sum over the group, with the same bits in each of its threads. Every
  // thread of the group calls it equally often; `turn` counts the calls.
  static __device__ __forceinline__ void sum(float (&values)[COUNT], Scratch& scratch, int turn) {
#pragma unroll
    for (int c = 0; c < COUNT; ++c) values[c] = butterfly<32>(values[c]);
    if constexpr (kWarps > 1) {
      float(&partial)[COUNT][kWarps] = scratch.partial[turn & 1];
      const int lane = threadIdx.x % 32;
#pragma unroll
      for (int c = 0; c < COUNT; ++c) {
        if (lane == 0) partial[c][threadIdx.x / 32] = values[c];
      }
      barrier();
#pragma unroll
      for (int c = 0; c < COUNT; ++c) values[c] = butterfly<kWarps>(partial[c][lane % kWarps]);
    }
  }

 private:
  template <int WIDTH>
  static __device__ __forceinline__ float butterfly(float value) {
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
  }

  // One hardware barrier for each group: rows of a block do not wait for each other. The numbers are
  // constants, since a kernel with a computed one is given all sixteen, and a multiprocessor then holds fewer
  // blocks.
  template <int GROUP = 0>
  static __device__ __forceinline__ void barrier() {
    if constexpr (GROUP + 1 < GROUPS) {
      if (threadIdx.y != GROUP) return barrier<GROUP + 1>();
    }
    asm volatile("bar.sync %0, %1;" ::"n"(GROUP), "n"(THREADS) : "memory");
  }
};
