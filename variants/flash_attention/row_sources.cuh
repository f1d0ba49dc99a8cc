// Who copies the rows of heads to shared memory for wgmma: kThreads of a warpgroup, whose threads may use kRegisters
// each where two warpgroups multiply.
#pragma once

#include "head_rows.cuh"
#include "tensor_memory.cuh"
#include "vector_io.cuh"
#include "warp_roles.cuh"
#include "wgmma.cuh"

// All threads, by cp.async: rows from any one on, of which those beyond the last one become zero.
template <typename T, int D>
struct CopiedRows {
  using Rows = HeadRows<const T>;
  static constexpr int kThreads = 128, kRegisters = 40;

  Rows queries, keys, values;

  template <typename Tile>
  static __device__ __forceinline__ void start(unsigned int to, const Rows& from, int row, unsigned int) {
    RowCopy<Tile, D, kThreads>::start(to, from, row);
  }
  static __device__ __forceinline__ void arrive(unsigned int barrier, int) { arrive_when_copied(barrier); }
  static __device__ __forceinline__ void publish() { publish_to_wgmma(); }
  static __device__ __forceinline__ void finish() { wait_for_copies<0>(); }
  // The same rows of a later head, `step` elements from one to the next.
  static __device__ __forceinline__ Rows of_head(const Rows& first, int head, long long step) {
    return {first.data + head * step, first.rows, first.pitch};
  }
};

// One thread, by TMA: a tensor's axes are columns, rows, heads and batches, and a box is a panel of a tile.
struct BoxedRows {
  struct Rows {
    const TensorMap& map;
    int head, batch;
  };
  static constexpr int kThreads = 1, kRegisters = 24;

  Rows queries, keys, values;

  template <typename Tile>
  static __device__ __forceinline__ void start(unsigned int to, const Rows& from, int row,
                                               unsigned int barrier) {
#pragma unroll
    for (int panel = 0; panel < Tile::kPanels; ++panel) {
      load_box(to + panel * Tile::kPanelBytes, from.map, panel * Tile::kPanelColumns, row, from.head,
               from.batch, barrier);
    }
  }
  static __device__ __forceinline__ void arrive(unsigned int barrier, int bytes) {
    expect_bytes(barrier, bytes);
  }
  static __device__ __forceinline__ void publish() {}
  static __device__ __forceinline__ void finish() {}
  static __device__ __forceinline__ Rows of_head(const Rows& first, int head, long long) {
    return {first.map, first.head + head, first.batch};
  }
};

// What a block of gradients copies by a Source: its rows and their mates, and columns and mates of the first head that
// they meet.
template <typename Source>
struct GradientRows {
  typename Source::Rows rows, row_mates, columns, column_mates;
};
