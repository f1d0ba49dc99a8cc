// The part of the gradients that a block works on: BLOCK rows of one head, queries or keys, and the columns, keys or
// queries, that they meet, COLUMNS at a time. Weights are computed anew from the saved logarithms.
//
// With rows and columns as they are named here, both directions are the same:
//   weights = 2^(scale * rows * columns^T - logarithm)       the softmax, or its transpose
//   slopes  = weights * (mates * mates^T - delta)            of the scores
//   of the rows:       slopes * columns                      dQ from K, dK from Q
//   of the rows' mates, where the rows are keys: weights * the columns' mates, dV from dO
// Mates of queries are dO, mates of keys are V.
#pragma once

#include "head_rows.cuh"
#include "softmax.cuh"
#include "warp_rows.cuh"

// Of a query: the logarithm of its summed exponentials to the base 2 (infinity where it sees no key, so that its
// weights are 0), and the sum of O * dO.
struct QueryFacts {
  float logarithm, delta;
};

template <int N8>
__device__ __forceinline__ void clear(float (&values)[N8][4]) {
#pragma unroll
  for (int i = 0; i < N8 * 4; ++i) {
    values[i / 4][i % 4] = 0.0f;
  }
}

template <typename Element, int HEAD_SIZE, bool CAUSAL, bool OF_KEYS, int BLOCK, int COLUMNS>
struct GradientTile {
  using T = Element;
  using Rows = HeadTile<T, BLOCK, HEAD_SIZE>;
  using Columns = HeadTile<T, COLUMNS, HEAD_SIZE>;
  static constexpr int kHeadSize = HEAD_SIZE, kBlock = BLOCK, kColumns = COLUMNS;
  static constexpr bool kOfKeys = OF_KEYS;

  HeadRows<const T> rows, row_mates;        // of the head
  HeadRows<const T> columns, column_mates;  // of the first of the heads that the rows meet
  long long head_step,
      mate_head_step;       // elements from the columns of one of these heads to the next, or mates
  int heads;                // how many
  const QueryFacts* facts;  // of the rows, or of the first head's columns
  int row;                  // the first one
  int diagonal;             // keys - queries, as in QueryTile
  float scale;              // of scores in the exponents of 2

  // The tiles of columns that any of the rows has to do with, of each head.
  __device__ __forceinline__ int first_tile() const {
    return CAUSAL && OF_KEYS && row > diagonal ? (row - diagonal) / COLUMNS : 0;
  }
  __device__ __forceinline__ int tiles() const {
    int count = columns.rows;
    if (CAUSAL && !OF_KEYS && row + BLOCK + diagonal < count) {
      count = row + BLOCK + diagonal;
    }
    const int end = count > 0 ? (count + COLUMNS - 1) / COLUMNS : 0;
    return end > first_tile() ? end - first_tile() : 0;
  }

  // Takes away the scores of keys that queries do not see, of the 16 rows from `first` on. Keys that are rows are
  // not stored beyond the last one, queries beyond the last one have no weights.
  template <int N8>
  __device__ __forceinline__ void mask(float (&scores)[N8][4], int first, int column) const {
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

  __device__ __forceinline__ QueryFacts facts_of(int head, int queries, int query) const {
    if (query >= queries) {
      return {-minus_infinity(), 0.0f};
    }
    return facts[static_cast<long long>(head) * queries + query];
  }

  __device__ __forceinline__ HeadRows<const T> columns_of(int head) const {
    return {columns.data + head * head_step, columns.rows, columns.pitch};
  }
  __device__ __forceinline__ HeadRows<const T> column_mates_of(int head) const {
    return {column_mates.data + head * mate_head_step, column_mates.rows, column_mates.pitch};
  }

 private:
  __device__ __forceinline__ int seen(int query, int keys) const {
    return CAUSAL && query + diagonal + 1 < keys ? query + diagonal + 1 : keys;
  }
};
