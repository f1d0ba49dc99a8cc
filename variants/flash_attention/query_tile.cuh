// The part of the problem that a block of the forward pass works on: BLOCK_M queries of one head, all keys that
// they see, and the result.
#pragma once

#include "head_rows.cuh"
#include "mask.cuh"
#include "softmax.cuh"
#include "warp_rows.cuh"

// GAPS: the result has rows beyond the queries, which see nothing.
template <typename Element, int HEAD_SIZE, typename WINDOW, typename SCORES, typename DROPOUT, bool GAPS,
          int BLOCK_M, int BLOCK_N>
struct QueryTile {
  using T = Element;
  using Queries = HeadTile<T, BLOCK_M, HEAD_SIZE>;
  using Keys = HeadTile<T, BLOCK_N, HEAD_SIZE>;  // or values
  static constexpr int kHeadSize = HEAD_SIZE, kBlockM = BLOCK_M, kBlockN = BLOCK_N;
  static constexpr int kLeft = WINDOW::kLeft, kRight = WINDOW::kRight;
  static constexpr bool kDrops = DROPOUT::kOn;
  static constexpr bool kSkipsFirst = kLeft != 0;  // tiles of keys that no query sees

  HeadRows<const T> queries, keys, values;
  HeadRows<T> result;
  float* logarithm;
  int row;  // the first query
  int diagonal;
  float scale;  // of scores in the exponents of 2
  float tangent_scale;
  DROPOUT dropout;

  // The end of the keys that a query sees.
  __device__ __forceinline__ int seen(int query) const {
    if constexpr (GAPS) {
      if (query >= queries.rows) {
        return 0;
      }
    }
    return kRight != 0 && query + diagonal + kRight < keys.rows ? query + diagonal + kRight : keys.rows;
  }

  // The first of these keys.
  __device__ __forceinline__ int begin_of(int query) const {
    return kLeft != 0 && query + diagonal >= kLeft ? query + diagonal - (kLeft - 1) : 0;
  }

  // Tiles of keys that the block goes through, the last one first. There may be none.
  __device__ __forceinline__ int tiles() const {
    if constexpr (GAPS) {
      if (row >= queries.rows) {
        return 0;
      }
    }
    const int last = row + BLOCK_M < queries.rows ? row + BLOCK_M - 1 : queries.rows - 1;
    const int count = seen(last);
    if constexpr (kSkipsFirst) {
      const int end = count > 0 ? (count + BLOCK_N - 1) / BLOCK_N : 0;
      return end > first_tile() ? end - first_tile() : 0;
    } else {
      return count > 0 ? (count + BLOCK_N - 1) / BLOCK_N : 0;
    }
  }

  // The first key of the last of these tiles, 0 unless kSkipsFirst.
  __device__ __forceinline__ int first_key() const { return first_tile() * BLOCK_N; }

  // Of products in the tile of keys that begins at `key` makes scores, without those of keys that queries do not see;
  // `query` is the first one of the warp's tile of scores, `first` the first one of all warps that decide together.
  template <int N8>
  __device__ __forceinline__ void mask(float (&scores)[N8][4], int first, int query, int key) const {
    if constexpr (SCORES::kCapped) {
      SCORES::cap(scores, tangent_scale);
    }
    if (key + BLOCK_N > seen(first) || (GAPS && row + BLOCK_M > queries.rows)) {
      const int lane = int(threadIdx.x) % 32;
      const int begin = key + lane % 4 * 2;
      mask_scores(scores, {seen(query + lane / 4) - begin, seen(query + lane / 4 + 8) - begin});
    }
    if constexpr (kSkipsFirst) {
      if (key < begin_of(row + BLOCK_M - 1)) {
        const int lane = int(threadIdx.x) % 32;
        const int begin = key + lane % 4 * 2;
        mask_scores_before(scores,
                           {begin_of(query + lane / 4) - begin, begin_of(query + lane / 4 + 8) - begin});
      }
    }
  }

  // Ends 16 queries of a warp and stores them, by way of their own rows (from `tile_row` on) of the tile of
  // queries, which nobody reads any more.
  template <int N8>
  __device__ __forceinline__ void store(float (&sums)[N8][4], OnlineSoftmax& softmax, unsigned char* tile,
                                        int tile_row) const {
    float factor[2], logarithms[2];
    softmax.finish(scale, factor, logarithms);
    if constexpr (DROPOUT::kOn) {
      factor[0] *= dropout.scale();
      factor[1] *= dropout.scale();
    }
    scale_rows(sums, factor);
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = row + tile_row + lane / 4 + half * 8;
      if (lane % 4 == 0 && query < result.rows) {
        logarithm[query] = logarithms[half];
      }
    }
    store_rows<Queries, HEAD_SIZE>(sums, tile, tile_row, result, row);
  }

 private:
  __device__ __forceinline__ int first_tile() const { return begin_of(row) / BLOCK_N; }
};
