// The engines of both passes, chosen by ENGINE.
#pragma once

#include "mma_attention.cuh"
#include "mma_gradients.cuh"
#include "sequences.cuh"
#include "wgmma_attention.cuh"
#include "wgmma_gradients.cuh"

enum Engine { kMma = 0, kWgmma = 1 };

// Tiles of wgmma begin at multiples of 1024 bytes.
__device__ __forceinline__ unsigned char* shared_memory() {
  extern __shared__ __align__(1024) unsigned char dynamic[];
  return dynamic + (0u - shared_address(dynamic)) % 1024;
}

template <int ENGINE, int WARPS, int STAGES, int QUERIES_IN_REGISTERS, int TAKE_TURNS, typename Tile>
__device__ __forceinline__ void attend(const Tile& tile) {
  if constexpr (ENGINE == kMma) {
    MmaAttention<Tile, WARPS, STAGES, QUERIES_IN_REGISTERS != 0>(tile, shared_memory()).run();
  } else {
    static_assert(WARPS == Tile::kBlockM / 16 + 4, "four warps for 64 queries, and four that copy");
    using Source = CopiedRows<typename Tile::T, Tile::kHeadSize>;
    const Source source{tile.queries, tile.keys, tile.values};
    WgmmaAttention<Tile, Source, STAGES, TAKE_TURNS != 0>(tile, source, shared_memory()).run();
  }
}

// Threads of a block of gradients: wgmma takes four warps for 64 rows, and four that copy.
template <int ENGINE, int BLOCK>
constexpr int kThreadsOf = BLOCK * 2 + (ENGINE == kWgmma ? 128 : 0);

template <int ENGINE, int STAGES, typename Tile, typename T>
__device__ __forceinline__ void compute(const Tile& tile, const HeadRows<T>& of_rows,
                                        const HeadRows<T>& of_mates, float slope_scale) {
  if constexpr (ENGINE == kMma) {
    MmaGradients<Tile, STAGES>(tile, shared_memory()).run(of_rows, of_mates, slope_scale);
  } else {
    using Source = CopiedRows<T, Tile::kHeadSize>;
    const GradientRows<Source> source{tile.rows, tile.row_mates, tile.columns, tile.column_mates};
    WgmmaGradients<Tile, Source, STAGES>(tile, source, shared_memory()).run(of_rows, of_mates, slope_scale);
  }
}

// Which head and tile a block has: of `heads_together` of the heads the blocks run side by side.
struct TileOfHead {
  int head, tile;
};

template <bool LAST_FIRST>
__device__ __forceinline__ TileOfHead tile_of_block(int tiles, int heads_together, int block, int heads) {
  const int first = block / (heads_together * tiles) * heads_together;
  const int together = heads - first < heads_together ? heads - first : heads_together;
  const int within = block % (heads_together * tiles);
  const int tile = within / together;
  return {first + within % together, LAST_FIRST ? tiles - 1 - tile : tile};
}

// The same of the grid's blocks.
template <bool LAST_FIRST>
__device__ __forceinline__ TileOfHead tile_of_block(int tiles, int heads_together) {
  return tile_of_block<LAST_FIRST>(tiles, heads_together, blockIdx.x, int(gridDim.x) / tiles);
}
