// Products of weights in registers with tiles of up to 256 columns, as wgmma.cuh has them with up to 128.
#pragma once

#include "wgmma.cuh"

// sums += left * right, where `right` is the address of 16 rows of a Tile.
template <typename T, typename Tile, int N8>
__device__ __forceinline__ void add_product(float (&sums)[N8][4], const unsigned int (&left)[4],
                                            unsigned int right) {
  static_assert(N8 == 8 || N8 % 16 == 0 || N8 == 24, "64, 128, 192 or 256 columns");
  if constexpr (N8 <= 16) {
    wgmma<T, false>(sums, left, wgmma_operand(right, Tile::kPanelBytes));
  } else {
    wgmma<T, false>(reinterpret_cast<float(&)[16][4]>(sums), left, wgmma_operand(right, Tile::kPanelBytes));
    wgmma<T, false>(reinterpret_cast<float(&)[N8 - 16][4]>(sums[16]), left,
                    wgmma_operand(right + 2 * Tile::kPanelBytes, Tile::kPanelBytes));
  }
}
