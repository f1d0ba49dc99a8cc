// How the THREADS threads that share a row of D elements divide it: in vectors, neighbouring threads taking
// neighbouring ones. D is compiled in, so that loops over a thread's items unroll wholly and carry no bounds
// checks where THREADS * VECTOR divides D.
#pragma once

template <int THREADS, int VECTOR, long long D>
struct RowLayout {
  static_assert(D % VECTOR == 0 && D < (1ll << 31), "rows are whole vectors, offsets in a row are 32-bit");
  static constexpr int kThreads = THREADS;
  static constexpr int kVector = VECTOR;
  static constexpr long long kColumns = D;
  static constexpr int kVectors = int(D / VECTOR);
  static constexpr int kItems = (kVectors + THREADS - 1) / THREADS;  // vectors of one thread
  static constexpr bool kEven = kVectors % THREADS == 0;

  static __device__ __forceinline__ bool inside(int item) {
    return kEven || int(threadIdx.x) + item * THREADS < kVectors;
  }
  static __device__ __forceinline__ int offset(int item) {
    return (int(threadIdx.x) + item * THREADS) * VECTOR;
  }
};

// Blocks that a multiprocessor is to hold at once, for __launch_bounds__: left alone, the compiler hoists loads
// and pays with registers that a memory-bound kernel needs for more rows. `registers` is what a thread's part
// of its rows takes.
__host__ __device__ constexpr int resident_blocks(int threads, int registers) {
  const int each = (registers + 64 + 7) / 8 * 8;
  const int blocks = 65536 / (each * threads);
  const int most = 2048 / threads < 32 ? 2048 / threads : 32;
  return blocks < 1 ? 1 : blocks > most ? most : blocks;
}
