// The rows of one head in global memory, and their copies to tiles in shared memory.
#pragma once

#include "guarded_copy.cuh"
#include "heads.cuh"
#include "swizzled_tile.cuh"

template <typename T>
struct HeadRows {
  T* data;
  int rows, pitch;
};

// The rows of a head, from those of all heads on.
template <int D, typename T>
__device__ __forceinline__ HeadRows<T> rows_of(T* all, const Heads<D>& heads, int head) {
  return {all + heads.begin(head), heads.rows, heads.pitch()};
}

// `rows` of them, from `begin` on.
template <int D, typename T>
__device__ __forceinline__ HeadRows<T> rows_of(T* all, const Heads<D>& heads, int head, int begin, int rows) {
  return {all + heads.begin(head) + static_cast<long long>(begin) * heads.pitch(), rows, heads.pitch()};
}

// In shared memory a row ends with a whole panel of 64 elements. What lies beyond the head size D is not written.
template <typename T, int ROWS, int D>
using HeadTile = SwizzledTile<T, ROWS, (D + 63) / 64 * 64>;

// Copies by THREADS threads: each takes the same 16 bytes of every kStep'th row, of all panels, so that one
// address serves a tile.
template <typename Tile, int D, int THREADS>
struct RowCopy {
  static constexpr int kStep = THREADS / 8;
  static_assert(Tile::kPitch == 128 && Tile::kRows % kStep == 0 && kStep % 8 == 0, "whole rows at once");

  static __device__ __forceinline__ int row() { return int(threadIdx.x) / 8; }
  static __device__ __forceinline__ int chunk() { return int(threadIdx.x) % 8 * 8; }

  // Starts the copy of the rows from `row` on. Rows that are not there become zero.
  template <typename T>
  static __device__ __forceinline__ void start(unsigned int tile, const HeadRows<T>& from, int first) {
    const T* data = from.data + static_cast<long long>(first + row()) * from.pitch + chunk();
    start(tile, data, from.pitch, from.rows - first - row());
  }

  // `from`: this thread's first 16 bytes; `left`: how many rows there are from that one on.
  template <typename T>
  static __device__ __forceinline__ void start(unsigned int tile, const T* from, int pitch, int left) {
    const unsigned int to = tile + Tile::offset(row(), chunk());
    if (left > Tile::kRows - kStep) {
#pragma unroll
      for (int row = 0; row < Tile::kRows; row += kStep) {
        copy(to + row * Tile::kPitch, from, true);
        from += static_cast<long long>(kStep) * pitch;
      }
    } else {
#pragma unroll 1
      for (int row = 0; row < Tile::kRows; row += kStep) {
        copy(to + row * Tile::kPitch, from, row < left);
        from += static_cast<long long>(kStep) * pitch;
      }
    }
  }

 private:
  template <typename T>
  static __device__ __forceinline__ void copy(unsigned int to, const T* from, bool inside) {
#pragma unroll
    for (int panel = 0; panel < Tile::kPanels; ++panel) {
      if ((panel + 1) * 64 <= D || panel * 64 + chunk() < D) {
        copy_or_zero_async<16>(to + panel * Tile::kPanelBytes, from + panel * 64, inside);
      }
    }
  }
};
