// Combines a state of each of the THREADS threads (a power of two) that share a row into the state of the row.
// A block holds GROUPS such groups, group g being the threads with threadIdx.y == g and THREADS == blockDim.x;
// blocks are whole warps. Above one warp a group has a hardware barrier of its own, so at most 16 fit.
//
// A State has `void merge(const State&)`, which gives the same bits whichever of the two calls it, and
// `State of_lane(int step) const`, the state of the lane whose number differs in the bit `step`.
#pragma once

__device__ __forceinline__ float exchange(float value, int step) {
  return __shfl_xor_sync(0xffffffffu, value, step);
}

// The plain sum of COUNT values.
template <int COUNT = 1>
struct Sums {
  float values[COUNT];

  __device__ __forceinline__ void merge(const Sums& other) {
#pragma unroll
    for (int c = 0; c < COUNT; ++c) {
      values[c] += other.values[c];
    }
  }
  __device__ __forceinline__ Sums of_lane(int step) const {
    Sums other;
#pragma unroll
    for (int c = 0; c < COUNT; ++c) {
      other.values[c] = exchange(values[c], step);
    }
    return other;
  }
};

template <int THREADS, int GROUPS, typename State, int COUNT = 1>
struct RowCombine {
  static_assert(THREADS >= 1 && (THREADS & (THREADS - 1)) == 0, "a power of two");
  static constexpr int kWarps = THREADS < 32 ? 1 : THREADS / 32;

  // States of one group's warps. Two sets take turns, so that one barrier a call is enough: a thread that is
  // a whole call ahead writes the set that nobody reads any more.
  struct Scratch {
    State partial[2][COUNT][kWarps];
  };

  // Replaces each of COUNT states by that of the group, with the same bits in each of its threads. All threads
  // of a warp call it together, and every thread of the group equally often; `turn` counts the calls.
  static __device__ __forceinline__ void combine(State (&states)[COUNT], Scratch& scratch, int turn) {
#pragma unroll
    for (int c = 0; c < COUNT; ++c) {
      butterfly<(THREADS < 32 ? THREADS : 32)>(states[c]);
    }
    if constexpr (kWarps > 1) {
      State(&partial)[COUNT][kWarps] = scratch.partial[turn & 1];
      const int lane = threadIdx.x % 32;
#pragma unroll
      for (int c = 0; c < COUNT; ++c) {
        if (lane == 0) {
          partial[c][threadIdx.x / 32] = states[c];
        }
      }
      barrier();
#pragma unroll
      for (int c = 0; c < COUNT; ++c) {
        states[c] = partial[c][lane % kWarps];
        butterfly<kWarps>(states[c]);
      }
    }
  }

 private:
  template <int WIDTH>
  static __device__ __forceinline__ void butterfly(State& state) {
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) {
      state.merge(state.of_lane(step));
    }
  }

  // The numbers of barriers are constants, since a kernel with a computed one is given all sixteen, and a
  // multiprocessor then holds fewer blocks.
  template <int GROUP = 0>
  static __device__ __forceinline__ void barrier() {
    static_assert(GROUPS <= 16, "a block has 16 hardware barriers");
    if constexpr (GROUP + 1 < GROUPS) {
      if (threadIdx.y != GROUP) {
        return barrier<GROUP + 1>();
      }
    }
    asm volatile("bar.sync %0, %1;" ::"n"(GROUP), "n"(THREADS) : "memory");
  }
};
