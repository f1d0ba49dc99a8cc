// Enough of CUDA for a reference kernel to run on the host: one thread a block, one block after the other. A kernel
// that is right with blocks of any size is right so. Elements are double, which loses nothing.
#pragma once

#include <cmath>

#define __global__
#define __device__
#define __shared__ static
#define __syncthreads()

struct Index {
  unsigned int x, y, z;
};
inline Index blockIdx{0, 0, 0}, threadIdx{0, 0, 0}, blockDim{1, 1, 1};

inline double to_float(double value) { return value; }

template <typename T>
T from_float(float value) {
  return value;
}

/// Calls a kernel for each of `blocks` blocks.
template <typename Kernel>
void for_each_block(long long blocks, Kernel kernel) {
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    kernel();
  }
}
