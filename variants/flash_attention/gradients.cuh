// The gradients of BLOCK rows of one head, queries or keys: each warp goes with 16 of them through all columns,
// keys or queries, and computes the weights anew from the saved logarithms.
//
// With rows and columns as they are named here, both directions are the same:
//   weights = 2^(scale * rows * columns^T - logarithm)       the softmax, or its transpose
//   slopes  = weights * (mates * mates^T - delta)            of the scores
//   of the rows:       slopes * columns                      dQ from K, dK from Q
//   of the rows' mates, where the rows are keys: weights * the columns' mates, dV from dO
// Mates of queries are dO, mates of keys are V. Nothing is added by two threads: the bits are always the same.
#pragma once

#include "mma.cuh"
#include "softmax.cuh"
#include "tile_copy.cuh"
#include "warp_rows.cuh"

// Of a query: the logarithm of its summed exponentials to the base 2 (infinity where it sees no key, so that its
// weights are 0), and the sum of O * dO.
struct QueryFacts {
  float logarithm, delta;
};

// 16 rows of `to` += left * right, `left` in shared memory.
template <typename T, typename Left, typename Right, int N8>
__device__ __forceinline__ void multiply_tiles(float (&to)[N8][4], unsigned int left, unsigned int right) {
#pragma unroll
  for (int k = 0; k < Left::kColumns; k += 16) {
    unsigned int a[4];
    load_left<true, Left>(a, left, 0, k);
#pragma unroll
    for (int j = 0; j < N8; j += 2) {
      unsigned int b[4];
      load_right_pair<true, Right>(b, right, j * 8, k);
      mma<T>(to[j], a, b[0], b[1]);
      mma<T>(to[j + 1], a, b[2], b[3]);
    }
  }
}

// 16 rows of `to` += left * right, `left` in registers and rounded to T.
template <typename T, typename Right, int N8, int K8>
__device__ __forceinline__ void multiply_rows(float (&to)[N8][4], const float (&left)[K8][4],
                                              unsigned int right) {
#pragma unroll
  for (int k = 0; k < K8 / 2; ++k) {
    unsigned int a[4];
    round_weights<T>(a, left, k);
#pragma unroll
    for (int j = 0; j < N8; j += 2) {
      unsigned int b[4];
      load_right_pair<false, Right>(b, right, j * 8, k * 16);
      mma<T>(to[j], a, b[0], b[1]);
      mma<T>(to[j + 1], a, b[2], b[3]);
    }
  }
}

template <int N8>
__device__ __forceinline__ void clear(float (&values)[N8][4]) {
#pragma unroll
  for (int i = 0; i < N8 * 4; ++i) {
    values[i / 4][i % 4] = 0.0f;
  }
}

template <typename T, int HEAD_SIZE, bool CAUSAL, bool OF_KEYS, int BLOCK, int COLUMNS, int STAGES>
struct Gradients {
  using Rows = SwizzledTile<T, BLOCK, HEAD_SIZE>;
  using Columns = SwizzledTile<T, COLUMNS, HEAD_SIZE>;
  static constexpr int kThreads = BLOCK * 2, kN8 = COLUMNS / 8, kD8 = HEAD_SIZE / 8;
  static_assert(STAGES >= 2, "one buffer is read, one filled");

  Matrix<T> rows, row_mates;        // of the head
  Matrix<T> columns, column_mates;  // of the first of the heads that the rows meet
  int heads;                        // of those, which lie one after the other
  const QueryFacts* facts;          // of the rows, or of the first head's columns
  int row;                          // the first one
  int diagonal;                     // keys - queries, as in QueryTile
  float scale;                      // of scores in the exponents of 2

  // What the block computes: `of_rows`, and `of_mates` where the rows are keys.
  __device__ __forceinline__ void run(unsigned char* shared, T* of_rows, T* of_mates,
                                      float slope_scale) const {
    const unsigned int tiles = shared_address(shared);
    const int warp_row = int(threadIdx.x) / 32 * 16;
    const unsigned int left = left_address<true, Rows>(tiles, warp_row);
    float sums[kD8][4], mate_sums[OF_KEYS ? kD8 : 1][4];
    clear(sums);
    clear(mate_sums);
    TileCopy<T, Rows, kThreads, 8>::start(tiles, rows, row, 0);
    TileCopy<T, Rows, kThreads, 8>::start(tiles + Rows::kBytes, row_mates, row, 0);
    const int begin = first_tile(), per_head = end_tile() - begin;
    const int steps = per_head > 0 ? heads * per_head : 0;
#pragma unroll 1
    for (int step = 0; step < STAGES - 1; ++step) {
      start(tiles, step, steps, begin, per_head);
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait_for_copies<STAGES - 2>();
      __syncthreads();
      start(tiles, step + STAGES - 1, steps, begin, per_head);
      const int head = step / per_head, column = (begin + step % per_head) * COLUMNS;
      const unsigned int along = right_address<true, Columns>(buffer(tiles, step), 0);
      const unsigned int across = right_address<false, Columns>(buffer(tiles, step), 0);
      float weights[kN8][4], slopes[kN8][4];
      clear(weights);
      clear(slopes);
      multiply_tiles<T, Rows, Columns>(weights, left, along);
      multiply_tiles<T, Rows, Columns>(slopes, left + Rows::kBytes, along + Columns::kBytes);
      mask(weights, row + warp_row, column);
      weigh(weights, slopes, row + warp_row, head, column);
      if constexpr (OF_KEYS) {
        multiply_rows<T, Columns>(mate_sums, weights, across + Columns::kBytes);
      }
      multiply_rows<T, Columns>(sums, slopes, across);
    }
    wait_for_copies<0>();
    __syncthreads();
    scale_rows(sums, {slope_scale, slope_scale});
    store_rows<Rows>(sums, shared, warp_row, of_rows, row, rows.rows);
    if constexpr (OF_KEYS) {
      store_rows<Rows>(mate_sums, shared + Rows::kBytes, warp_row, of_mates, row, rows.rows);
    }
  }

 private:
  // The tiles of columns that any of the rows has to do with.
  __device__ __forceinline__ int first_tile() const {
    return CAUSAL && OF_KEYS && row > diagonal ? (row - diagonal) / COLUMNS : 0;
  }
  __device__ __forceinline__ int end_tile() const {
    int count = columns.rows;
    if (CAUSAL && !OF_KEYS && row + BLOCK + diagonal < count) {
      count = row + BLOCK + diagonal;
    }
    return count > 0 ? (count + COLUMNS - 1) / COLUMNS : 0;
  }

  static __device__ __forceinline__ unsigned int buffer(unsigned int tiles, int step) {
    return tiles + 2 * Rows::kBytes + step % STAGES * (2 * Columns::kBytes);
  }

  __device__ __forceinline__ void start(unsigned int tiles, int step, int steps, int begin,
                                        int per_head) const {
    if (step < steps) {
      const long long skipped = static_cast<long long>(step / per_head) * columns.rows * HEAD_SIZE;
      const int column = (begin + step % per_head) * COLUMNS;
      const unsigned int to = buffer(tiles, step);
      TileCopy<T, Columns, kThreads, 8>::start(to, {columns.data + skipped, columns.rows, HEAD_SIZE}, column,
                                               0);
      TileCopy<T, Columns, kThreads, 8>::start(
          to + Columns::kBytes, {column_mates.data + skipped, columns.rows, HEAD_SIZE}, column, 0);
    }
    close_copy_group();
  }

  // Takes away the scores of keys that queries do not see. Keys that are rows are not stored beyond the last one,
  // queries beyond the last one have no weights.
  __device__ __forceinline__ void mask(float (&scores)[kN8][4], int first, int column) const {
    const int lane = int(threadIdx.x) % 32;
    const int upper = first + lane / 4, begin = column + lane % 4 * 2;
    if constexpr (OF_KEYS) {
      if (CAUSAL && first + 15 - diagonal > column) {
        mask_scores_before(scores, {upper - diagonal - begin, upper + 8 - diagonal - begin});
      }
    } else {
      const int keys = columns.rows;
      if (column + COLUMNS > keys || (CAUSAL && column + COLUMNS > first + diagonal + 1)) {
        mask_scores(scores, {seen(upper, keys) - begin, seen(upper + 8, keys) - begin});
      }
    }
  }
  __device__ __forceinline__ int seen(int query, int keys) const {
    return CAUSAL && query + diagonal + 1 < keys ? query + diagonal + 1 : keys;
  }

  // Scores become weights, products of mates become slopes.
  __device__ __forceinline__ void weigh(float (&weights)[kN8][4], float (&slopes)[kN8][4], int first,
                                        int head, int column) const {
    const int lane = int(threadIdx.x) % 32;
    QueryFacts of_rows[2];
    if constexpr (!OF_KEYS) {
      of_rows[0] = facts_of(0, rows.rows, first + lane / 4);
      of_rows[1] = facts_of(0, rows.rows, first + lane / 4 + 8);
    }
#pragma unroll
    for (int j = 0; j < kN8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        QueryFacts of_column;
        if constexpr (OF_KEYS) {
          of_column = facts_of(head, columns.rows, column + j * 8 + lane % 4 * 2 + e);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const QueryFacts query = OF_KEYS ? of_column : of_rows[half];
          const float weight = exp2_approximate(fmaf(weights[j][half * 2 + e], scale, -query.logarithm));
          weights[j][half * 2 + e] = weight;
          slopes[j][half * 2 + e] = weight * (slopes[j][half * 2 + e] - query.delta);
        }
      }
    }
  }
  __device__ __forceinline__ QueryFacts facts_of(int head, int queries, int query) const {
    if (query >= queries) {
      return {-minus_infinity(), 0.0f};
    }
    return facts[static_cast<long long>(head) * queries + query];
  }
};
