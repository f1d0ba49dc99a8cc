// 16 rows of float32 as a warp holds them (softmax.cuh): rounded as the left operand of a product, and stored.
#pragma once

#include "half_types.cuh"
#include "head_rows.cuh"

// The 16 columns from 16 * k on, rounded to T.
template <typename T, int N8>
__device__ __forceinline__ void round_weights(unsigned int (&to)[4], const float (&weights)[N8][4], int k) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[i] = rounded_pair<T>(weights[k * 2 + i / 2][i % 2 * 2], weights[k * 2 + i / 2][i % 2 * 2 + 1]);
  }
}

// Stores D columns of those rows that there are in `to`, from row + tile_row on, by way of the rows of a tile in shared
// memory from tile_row on, which are the warp's own.
template <typename Tile, int D, typename T, int N8>
__device__ __forceinline__ void store_rows(const float (&values)[N8][4], unsigned char* tile, int tile_row,
                                           const HeadRows<T>& to, int row) {
  static_assert(N8 * 8 >= D && D % 16 == 0, "whole rows");
  unsigned int lane = threadIdx.x % 32;
  asm volatile("" : "+r"(lane));  // else a loop around this keeps the addresses in registers, and spills
#pragma unroll
  for (int i = 0; i < D / 4; ++i) {
    const int below = tile_row + lane / 4 + i % 2 * 8;
    *reinterpret_cast<unsigned int*>(tile + Tile::offset(below, i / 2 * 8) + lane % 4 * 4) =
        rounded_pair<T>(values[i / 2][i % 2 * 2], values[i / 2][i % 2 * 2 + 1]);
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < D / 16; ++i) {
    const int chunk = i * 32 + lane, below = tile_row + chunk / (D / 8), column = chunk % (D / 8) * 8;
    if (row + below < to.rows) {
      *reinterpret_cast<uint4*>(to.data + static_cast<long long>(row + below) * to.pitch + column) =
          *reinterpret_cast<const uint4*>(tile + Tile::offset(below, column));
    }
  }
}
