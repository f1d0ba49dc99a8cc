// Enough of CUDA for a reference kernel to run on the host, one block after the other. Elements are double, which
// loses nothing. A kernel that is right with blocks of any size is right with one thread a block; one that counts on its
// threads has as many threads here.
#pragma once

#include <array>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __forceinline__ inline

struct Index {
  unsigned int x, y, z;
};
inline thread_local Index blockIdx{0, 0, 0}, threadIdx{0, 0, 0};
inline Index blockDim{1, 1, 1}, gridDim{1, 1, 1};

/// 32 threads that exchange values.
struct HostWarp {
  std::array<float, 32> values{};
  std::barrier<> barrier{32};
};
/// The block that a thread belongs to; null: it is alone.
struct HostBlock {
  explicit HostBlock(std::ptrdiff_t threads)
      : barrier(threads), warps(static_cast<std::size_t>(threads) / 32) {}
  std::barrier<> barrier;
  std::deque<HostWarp> warps;  // which do not move
};
inline thread_local HostBlock* host_block = nullptr;

inline void __syncthreads() {
  if (host_block != nullptr) {
    host_block->barrier.arrive_and_wait();
  }
}

inline float __shfl_xor_sync(unsigned int, float value, int other) {
  HostWarp& warp = host_block->warps[threadIdx.x / 32];
  warp.values[threadIdx.x % 32] = value;
  warp.barrier.arrive_and_wait();
  const float found = warp.values[threadIdx.x % 32 ^ static_cast<unsigned int>(other)];
  warp.barrier.arrive_and_wait();
  return found;
}

inline float __uint_as_float(unsigned int bits) { return __builtin_bit_cast(float, bits); }

inline double to_float(double value) { return value; }

template <typename T>
T from_float(double value) {
  return value;
}

/// Of elements, which are double here.
template <typename A, typename B>
float fmaf(A a, B b, float c) {
  return static_cast<float>(a * b + c);
}

/// Calls a kernel for each of `blocks` blocks.
template <typename Kernel>
void for_each_block(long long blocks, Kernel kernel) {
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    kernel();
  }
}

/// The same with so many threads per block, a multiple of 32.
template <typename Kernel>
void for_each_block_of(unsigned int threads, long long blocks, Kernel kernel) {
  HostBlock block(threads);
  std::vector<std::jthread> running;
  for (unsigned int thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      host_block = &block;
      threadIdx.x = thread;
      for_each_block(blocks, [&] {
        kernel();
        __syncthreads();
      });
    });
  }
}
