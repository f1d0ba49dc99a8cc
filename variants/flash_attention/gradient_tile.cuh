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
#include "mask.cuh"
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

// Which gradients a block computes: of its rows (dQ or dK), of their mates (dV), or both.
enum class Gradients { kOfRows, kOfMates, kBoth };

template <typename Element, int HEAD_SIZE, typename WINDOW, typename SCORES, typename DROPOUT, bool GAPS,
          bool OF_KEYS, Gradients GRADIENTS, int BLOCK, int COLUMNS>
struct GradientTile {
  using T = Element;
  using Rows = HeadTile<T, BLOCK, HEAD_SIZE>;
  using Columns = HeadTile<T, COLUMNS, HEAD_SIZE>;
  using Scores = SCORES;
  static constexpr int kHeadSize = HEAD_SIZE, kBlock = BLOCK, kColumns = COLUMNS;
  static constexpr int kLeft = WINDOW::kLeft, kRight = WINDOW::kRight;
  static constexpr bool kOfKeys = OF_KEYS, kDrops = DROPOUT::kOn;
  static constexpr bool kOfRows = GRADIENTS != Gradients::kOfMates,
                        kOfMates = GRADIENTS != Gradients::kOfRows;
  static constexpr int kLeftBytes = (kOfRows ? 2 : 1) * Rows::kBytes;  // of rows and, for slopes, their mates

  HeadRows<const T> rows, row_mates;        // of the head
  HeadRows<const T> columns, column_mates;  // of the first of the heads that the rows meet
  long long head_step,
      mate_head_step;       // elements from the columns of one of these heads to the next, or mates
  int heads;                // how many
  const QueryFacts* facts;  // of the rows, or of the first head's columns
  int facts_step;           // from one head's to the next
  int row;                  // the first one
  int diagonal;             // keys - queries
  float scale;              // of scores in the exponents of 2
  float tangent_scale;
  DROPOUT dropout;  // of the first head

  // The tiles of columns that any of the rows has to do with, of each head.
  __device__ __forceinline__ int first_tile() const {
    if constexpr (kLeft != 0 && !OF_KEYS) {
      return begin_of(row) / COLUMNS;
    } else {
      return kRight != 0 && OF_KEYS && row > diagonal + (kRight - 1)
                 ? (row - diagonal - (kRight - 1)) / COLUMNS
                 : 0;
    }
  }
  __device__ __forceinline__ int tiles() const {
    if constexpr (GAPS) {
      if (row >= rows.rows) {
        return 0;
      }
    }
    int count = columns.rows;
    if (kRight != 0 && !OF_KEYS && row + BLOCK + diagonal + (kRight - 1) < count) {
      count = row + BLOCK + diagonal + (kRight - 1);
    }
    if (kLeft != 0 && OF_KEYS && row + BLOCK - 1 - diagonal + kLeft < count) {
      count = row + BLOCK - 1 - diagonal + kLeft;
    }
    const int end = count > 0 ? (count + COLUMNS - 1) / COLUMNS : 0;
    return end > first_tile() ? end - first_tile() : 0;
  }

  // Of products makes scores, without those of keys that queries do not see, of the 16 rows from `first` on. Keys that
  // are rows are not stored beyond the last one but into gaps, queries beyond the last one have no weights.
  template <int N8>
  __device__ __forceinline__ void mask(float (&scores)[N8][4], int first, int column) const {
    if constexpr (SCORES::kCapped) {
      SCORES::cap(scores, tangent_scale);
    }
    const int lane = int(threadIdx.x) % 32;
    const int upper = first + lane / 4, begin = column + lane % 4 * 2;
    if constexpr (OF_KEYS) {
      constexpr int kAhead = kRight - 1;
      if (kRight != 0 && first + 15 - diagonal - kAhead > column) {
        mask_scores_before(scores,
                           {upper - diagonal - kAhead - begin, upper + 8 - diagonal - kAhead - begin});
      }
      if constexpr (kLeft != 0 || GAPS) {
        if ((kLeft != 0 && column + COLUMNS > first - diagonal + kLeft) || (GAPS && first + 16 > rows.rows)) {
          mask_scores(scores, {end_of_queries(upper) - begin, end_of_queries(upper + 8) - begin});
        }
      }
    } else {
      const int keys = columns.rows;
      if (column + COLUMNS > keys || (kRight != 0 && column + COLUMNS > first + diagonal + kRight)) {
        mask_scores(scores, {seen(upper, keys) - begin, seen(upper + 8, keys) - begin});
      }
      if constexpr (kLeft != 0) {
        if (column < begin_of(first + 15)) {
          mask_scores_before(scores, {begin_of(upper) - begin, begin_of(upper + 8) - begin});
        }
      }
    }
  }

  // Turns the sign of the weights that dropout took away, of the rows from `first` on and `head` of those that the rows
  // meet.
  template <int N8>
  __device__ __forceinline__ void mark_dropped(float (&weights)[N8][4], int first, int head,
                                               int column) const {
    DROPOUT of_head = dropout;
    of_head.head += head;
    of_head.template mark<OF_KEYS>(weights, first, column);
  }

  // The slope of a score whose weight is negative where dropped, from the product of mates.
  __device__ __forceinline__ float slope_of_marked(float weight, float product, float delta) const {
    return weight * (weight > 0.0f ? fmaf(product, dropout.scale(), -delta) : delta);
  }

  // The weights' products with mates lack the factor of dropout.
  template <int N8>
  __device__ __forceinline__ void scale_mates(float (&sums)[N8][4]) const {
    if constexpr (DROPOUT::kOn) {
      scale_rows(sums, {dropout.scale(), dropout.scale()});
    }
  }

  __device__ __forceinline__ QueryFacts facts_of(int head, int queries, int query) const {
    if (query >= queries) {
      return {-minus_infinity(), 0.0f};
    }
    return facts[static_cast<long long>(head) * facts_step + query];
  }

  __device__ __forceinline__ HeadRows<const T> columns_of(int head) const {
    return {columns.data + head * head_step, columns.rows, columns.pitch};
  }
  __device__ __forceinline__ HeadRows<const T> column_mates_of(int head) const {
    return {column_mates.data + head * mate_head_step, column_mates.rows, column_mates.pitch};
  }

 private:
  // The end of the keys that a query sees, and the first of them.
  __device__ __forceinline__ int seen(int query, int keys) const {
    return kRight != 0 && query + diagonal + kRight < keys ? query + diagonal + kRight : keys;
  }
  __device__ __forceinline__ int begin_of(int query) const {
    return query + diagonal >= kLeft ? query + diagonal - (kLeft - 1) : 0;
  }
  // The end of the queries that see a key.
  __device__ __forceinline__ int end_of_queries(int key) const {
    if (GAPS && key >= rows.rows) {
      return 0;
    }
    return kLeft != 0 && key - diagonal + kLeft < columns.rows ? key - diagonal + kLeft : columns.rows;
  }
};
