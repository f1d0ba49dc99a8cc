// The tiles of products of groups of rows, each with its own matrix. Group e has the rows from offsets[e - 1] (0 for
// the first one) up to offsets[e].
//
// The tiles of a group begin at its first row, so that no tile has rows of two groups. How many tiles there are is
// known on the device alone: every block walks along the groups to its tiles.
#pragma once

#include "as_it_is.cuh"
#include "tma_engine.cuh"

// Walks along the groups: items are tiles, group after group, column after column of tiles.
template <int BLOCK_M>
struct GroupWalk {
  const int* offsets;
  int groups, columns;                         // columns of tiles
  int group = 0, begin = 0, end, item_of = 0;  // the group that is reached, its rows, its first item

  __device__ __forceinline__ GroupWalk(const int* offsets, int groups, int columns)
      : offsets(offsets), groups(groups), columns(columns), end(offsets[0]) {}

  __device__ __forceinline__ int rows() const { return (end - begin + BLOCK_M - 1) / BLOCK_M; }

  // To the group of an item that does not lie before the one reached; false behind the last group.
  __device__ __forceinline__ bool reach(int item) {
    while (item >= item_of + rows() * columns) {
      item_of += rows() * columns;
      begin = end;
      if (++group >= groups) {
        group = groups - 1;
        return false;
      }
      end = offsets[group];
    }
    return true;
  }
  // Of an item of the group reached: its first row within the group, and its column of tiles.
  __device__ __forceinline__ int row(int item) const { return (item - item_of) % rows() * BLOCK_M; }
  __device__ __forceinline__ int column(int item) const { return (item - item_of) / rows(); }
};

// The tiles of the TMA engine. Those of a cluster lie side by side.
template <typename T, int BLOCK_M, int BLOCK_N, int CLUSTER>
struct GroupedTiles {
  static constexpr bool kRagged = true;

  T* c;
  int N, rows_of_b;  // of a group's matrix, as it lies in memory
  GroupWalk<BLOCK_M> walk;

  __device__ __forceinline__ bool find(int item, int rank, TmaTile& tile) {
    const bool found = walk.reach(item);
    if (found) {
      tile = {walk.begin + walk.row(item), (walk.column(item) * CLUSTER + rank) * BLOCK_N,
              walk.group * rows_of_b, walk.end};
    }
    return found;
  }
};
