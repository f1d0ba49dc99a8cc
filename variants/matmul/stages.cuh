// The tiles of A and B that a block multiplies, and their way through STAGES buffers in shared memory.
#pragma once

#include "tile_copy.cuh"
#include "vector_io.cuh"

template <typename Element, int BLOCK_M, int BLOCK_N, int BLOCK_K, int WARPS_M_, int WARPS_N_, int STAGES,
          int VECTOR, bool TRANSPOSE_A, bool TRANSPOSE_B>
struct Stages {
  using T = Element;
  // Whether the rows of an operand's tile run along k.
  static constexpr bool kLeftAlongK = !TRANSPOSE_A, kRightAlongK = TRANSPOSE_B;
  using Left = SwizzledTile<T, kLeftAlongK ? BLOCK_M : BLOCK_K, kLeftAlongK ? BLOCK_K : BLOCK_M>;
  using Right = SwizzledTile<T, kRightAlongK ? BLOCK_N : BLOCK_K, kRightAlongK ? BLOCK_K : BLOCK_N>;
  static constexpr int kBlockM = BLOCK_M, kBlockN = BLOCK_N, kBlockK = BLOCK_K;
  static constexpr int kWarpsM = WARPS_M_, kWarpsN = WARPS_N_, kThreads = WARPS_M_ * WARPS_N_ * 32;
  static constexpr int kStages = STAGES, kStageBytes = Left::kBytes + Right::kBytes;

  Matrix<T> a, b;  // as they lie in memory
  int m, n;        // of the block's first element
  int k;           // where the block's part of k begins
  int steps;       // of BLOCK_K
  unsigned int shared;

  __device__ __forceinline__ unsigned int left(int step) const {
    return shared + step % STAGES * kStageBytes;
  }
  __device__ __forceinline__ unsigned int right(int step) const { return left(step) + Left::kBytes; }

  // Starts the copies of a step, if there is one, and closes their group.
  __device__ __forceinline__ void start(int step) const {
    if (step < steps) {
      const int at = k + step * BLOCK_K;
      TileCopy<T, Left, kThreads, VECTOR>::start(left(step), a, kLeftAlongK ? m : at, kLeftAlongK ? at : m);
      TileCopy<T, Right, kThreads, VECTOR>::start(right(step), b, kRightAlongK ? n : at,
                                                  kRightAlongK ? at : n);
    }
    close_copy_group();
  }
};
