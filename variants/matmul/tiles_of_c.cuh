// The order in which blocks take the tiles of C.
#pragma once

#include "tma_engine.cuh"

struct TileOfC {
  int row, column;
};

// Blocks go down GROUP_M rows of tiles, then one to the right, then on below.
template <int GROUP_M>
__device__ __forceinline__ TileOfC tile_of_block(int block, int rows, int columns) {
  const int group = block / (GROUP_M * columns) * GROUP_M;
  const int height = rows - group < GROUP_M ? rows - group : GROUP_M;
  const int within = block % (GROUP_M * columns);
  return {group + within % height, within / height};
}

// The tiles of ENGINE 3. Those of a cluster lie side by side where they share A, else one below the other.
template <int BLOCK_M, int BLOCK_N, int GROUP_M, int CLUSTER>
struct TilesOfC {
  static constexpr bool kRagged = false, kShareA = BLOCK_M > BLOCK_N;
  static constexpr int kDown = kShareA ? 1 : CLUSTER, kRight = kShareA ? CLUSTER : 1;

  int M, N, rows, columns;  // rows and columns of a cluster's tiles

  __device__ __forceinline__ TilesOfC(int M, int N)
      : M(M),
        N(N),
        rows((M + kDown * BLOCK_M - 1) / (kDown * BLOCK_M)),
        columns((N + kRight * BLOCK_N - 1) / (kRight * BLOCK_N)) {}

  __device__ __forceinline__ bool find(int item, int rank, TmaTile& tile) const {
    const TileOfC at = tile_of_block<GROUP_M>(item, rows, columns);
    tile = {(at.row * kDown + (kShareA ? 0 : rank)) * BLOCK_M,
            (at.column * kRight + (kShareA ? rank : 0)) * BLOCK_N, 0, M};
    return item < rows * columns;
  }
};
