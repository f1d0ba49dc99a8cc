// Copies of a matrix's tiles to shared memory by all THREADS threads of a block, VECTOR elements at a time.
#pragma once

#include "guarded_copy.cuh"
#include "swizzled_tile.cuh"

// A matrix of `rows` dense rows of `columns` elements, a multiple of the VECTOR by which it is copied.
template <typename T>
struct Matrix {
  const T* data;
  int rows, columns;
};

template <typename T, typename Tile, int THREADS, int VECTOR>
struct TileCopy {
  static constexpr int kPerRow = Tile::kPanelColumns / VECTOR;  // copies
  static constexpr int kRowStep = THREADS / kPerRow;            // rows of a panel copied at once
  static constexpr int kAllRows = Tile::kPanels * Tile::kRows;
  static constexpr int kSteps = (kAllRows + kRowStep - 1) / kRowStep;
  static constexpr int kUnrolled = kSteps <= 16 && VECTOR * int(sizeof(T)) == 16 ? kSteps : 4;
  static_assert(THREADS % kPerRow == 0, "whole rows at once");

  // Starts the copy of the tile whose first element is (row, column). What lies outside of the matrix becomes
  // zero.
  static __device__ __forceinline__ void start(unsigned int tile, const Matrix<T>& from, int row,
                                               int column) {
    const int lane_row = int(threadIdx.x) / kPerRow;
    const int lane_column = int(threadIdx.x) % kPerRow * VECTOR;
    if constexpr (Tile::kRows % kRowStep == 0) {
      // From step to step by one addition: addresses that are all kept would cost a product its registers.
      const long long stride = static_cast<long long>(kRowStep) * from.columns;
      const T* first =
          from.data + static_cast<long long>(row + lane_row) * from.columns + column + lane_column;
#pragma unroll
      for (int panel = 0; panel < Tile::kPanels; ++panel) {
        const int tile_column = panel * Tile::kPanelColumns + lane_column;
        const bool column_inside = column + tile_column < from.columns;
        const T* source = first + panel * Tile::kPanelColumns;
#pragma unroll kUnrolled
        for (int tile_row = 0; tile_row < Tile::kRows; tile_row += kRowStep) {
          const bool inside = column_inside && row + lane_row + tile_row < from.rows;
          copy(tile, lane_row + tile_row, tile_column, source, inside);
          source += stride;
        }
      }
    } else {
#pragma unroll kUnrolled
      for (int step = 0; step < kSteps; ++step) {
        const int panel = (lane_row + step * kRowStep) / Tile::kRows;
        const int tile_row = (lane_row + step * kRowStep) % Tile::kRows;
        const int tile_column = panel * Tile::kPanelColumns + lane_column;
        const bool inside = row + tile_row < from.rows && column + tile_column < from.columns;
        const long long at = static_cast<long long>(row + tile_row) * from.columns + column + tile_column;
        if (kAllRows % kRowStep == 0 || panel < Tile::kPanels) {
          copy(tile, tile_row, tile_column, from.data + at, inside);
        }
      }
    }
  }

 private:
  static __device__ __forceinline__ void copy(unsigned int tile, int row, int column, const T* from,
                                              bool inside) {
    const unsigned int to = tile + Tile::offset(row, column) + column % Tile::kChunk * int(sizeof(T));
    if constexpr (VECTOR * sizeof(T) >= 4) {
      copy_or_zero_async<VECTOR* int(sizeof(T))>(to, from, inside);
    } else {
      store_shared(to,
                   inside ? *reinterpret_cast<const unsigned short*>(from) : static_cast<unsigned short>(0));
    }
  }
};
