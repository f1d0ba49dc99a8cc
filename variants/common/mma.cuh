// Matrix products of a warp on 16 x 8 tiles of float32 (mma.sync m16n8k16, sm_80), and loads of their operands.
//
// Lane l holds of a 16 x 8 tile of the result the elements (l / 4, l % 4 * 2 + {0, 1}), and the same eight rows
// below. Operands are as ldmatrix leaves them: a 16 x 16 tile in four registers for the left one, a 16 x 8 tile
// in two for the right one.
#pragma once

#include "half_types.cuh"

// Four 8 x 8 tiles of 16-bit elements. Lanes 8i to 8i + 7 give the addresses of tile i's rows; lane l gets of
// each tile the elements (l / 4, l % 4 * 2 + {0, 1}).
__device__ __forceinline__ void load_tiles(unsigned int (&to)[4], unsigned int row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// The same with each tile transposed.
__device__ __forceinline__ void load_tiles_transposed(unsigned int (&to)[4], unsigned int row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

template <typename T>
__device__ __forceinline__ void mma(float (&c)[4], const unsigned int (&a)[4], unsigned int b0,
                                    unsigned int b1);

template <>
__device__ __forceinline__ void mma<__nv_bfloat16>(float (&c)[4], const unsigned int (&a)[4], unsigned int b0,
                                                   unsigned int b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void mma<__half>(float (&c)[4], const unsigned int (&a)[4], unsigned int b0,
                                            unsigned int b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Operands in tiles in shared memory that begin at multiples of 1024 bytes. ALONG_K: the tile's rows run along k,
// else it has one row for each k. A thread reads all of a tile from one address on, where what begins at `row` or
// `column`, a multiple of the part of the tile that its warp works on, lies for it.
template <bool ALONG_K, typename Tile>
__device__ __forceinline__ unsigned int left_address(unsigned int tile, int row) {
  const int lane = int(threadIdx.x) % 32;
  return tile + (ALONG_K ? Tile::offset(row + lane % 16, lane / 16 * 8)
                         : Tile::offset(lane % 8 + lane / 16 * 8, row + lane / 8 % 2 * 8));
}

template <bool ALONG_K, typename Tile>
__device__ __forceinline__ unsigned int right_address(unsigned int tile, int column) {
  const int lane = int(threadIdx.x) % 32;
  return tile + (ALONG_K ? Tile::offset(column + lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8)
                         : Tile::offset(lane % 16, column + lane / 16 * 8));
}

// The left operand `row` rows and `k` values of k on, multiples of 16.
template <bool ALONG_K, typename Tile>
__device__ __forceinline__ void load_left(unsigned int (&to)[4], unsigned int address, int row, int k) {
  if constexpr (ALONG_K) {
    load_tiles(to, Tile::moved(address, row, k));
  } else {
    load_tiles_transposed(to, Tile::moved(address, k, row));
  }
}

// Two right operands side by side `column` columns and `k` values of k on, multiples of 16; the first is to[0]
// and to[1].
template <bool ALONG_K, typename Tile>
__device__ __forceinline__ void load_right_pair(unsigned int (&to)[4], unsigned int address, int column,
                                                int k) {
  if constexpr (ALONG_K) {
    load_tiles(to, Tile::moved(address, column, k));
  } else {
    load_tiles_transposed(to, Tile::moved(address, k, column));
  }
}
