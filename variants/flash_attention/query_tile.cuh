// The part of the problem that a block of the forward pass works on: BLOCK_M queries of one head, all keys that
// they see, and the result.
#pragma once

#include "head_rows.cuh"
#include "softmax.cuh"
#include "warp_rows.cuh"

template <typename Element, int HEAD_SIZE, bool CAUSAL, int BLOCK_M, int BLOCK_N>
struct QueryTile {
  using T = Element;
  using Queries = HeadTile<T, BLOCK_M, HEAD_SIZE>;
  using Keys = HeadTile<T, BLOCK_N, HEAD_SIZE>;  // or values
  static constexpr int kHeadSize = HEAD_SIZE, kBlockM = BLOCK_M, kBlockN = BLOCK_N;

  HeadRows<const T> queries, keys, values;
  HeadRows<T> result;
  float* logarithm;
  int row;       // the first query
  int diagonal;  // keys - queries: query i sees key j where j <= i + diagonal, or all where not CAUSAL
  float scale;   // of scores in the exponents of 2

  // Keys that a query sees.
  __device__ __forceinline__ int seen(int query) const {
    return CAUSAL && query + diagonal + 1 < keys.rows ? query + diagonal + 1 : keys.rows;
  }

  // Tiles of keys that the block goes through, the last one first. There may be none.
  __device__ __forceinline__ int tiles() const {
    const int last = row + BLOCK_M < queries.rows ? row + BLOCK_M - 1 : queries.rows - 1;
    const int count = seen(last);
    return count > 0 ? (count + BLOCK_N - 1) / BLOCK_N : 0;
  }

  // Takes away the scores of keys that queries do not see, in the tile of keys that begins at `key`; `query` is
  // the first one of the warp's tile of scores, `first` the first one of all warps that decide together.
  template <int N8>
  __device__ __forceinline__ void mask(float (&scores)[N8][4], int first, int query, int key) const {
    if (key + BLOCK_N > seen(first)) {
      const int lane = int(threadIdx.x) % 32;
      const int begin = key + lane % 4 * 2;
      mask_scores(scores, {seen(query + lane / 4) - begin, seen(query + lane / 4 + 8) - begin});
    }
  }

  // Ends 16 queries of a warp and stores them, by way of their own rows (from `tile_row` on) of the tile of
  // queries, which nobody reads any more.
  template <int N8>
  __device__ __forceinline__ void store(float (&sums)[N8][4], OnlineSoftmax& softmax, unsigned char* tile,
                                        int tile_row) const {
    float factor[2], logarithms[2];
    softmax.finish(scale, factor, logarithms);
    scale_rows(sums, factor);
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = row + tile_row + lane / 4 + half * 8;
      if (lane % 4 == 0 && query < queries.rows) {
        logarithm[query] = logarithms[half];
      }
    }
    store_rows<Queries, HEAD_SIZE>(sums, tile, tile_row, result, row);
  }
};
