// ENGINE 0: WARPS warps with BLOCK_M / WARPS queries each multiply by mma.sync. Keys and values go through STAGES
// buffers each; with one, the copy of keys runs behind the product with values, and the other way round.
#pragma once

#include "mma.cuh"
#include "query_tile.cuh"
#include "vector_io.cuh"

template <typename Tile, int WARPS, int STAGES, bool QUERIES_IN_REGISTERS>
struct MmaAttention {
  using T = typename Tile::T;
  using Keys = typename Tile::Keys;
  static constexpr int kThreads = WARPS * 32, kM16 = Tile::kBlockM / WARPS / 16;
  static constexpr int kN8 = Tile::kBlockN / 8, kD16 = Tile::kHeadSize / 16;
  static_assert(kM16 * WARPS * 16 == Tile::kBlockM && kN8 % 2 == 0, "whole instructions");

  const Tile& tile;
  unsigned char* shared;
  const unsigned int queries, keys, values;  // addresses of this thread's part
  const int tiles, warp_row;
  unsigned int kept[QUERIES_IN_REGISTERS ? kM16 : 1][QUERIES_IN_REGISTERS ? kD16 : 1][4];
  float sums[kM16][kD16 * 2][4];
  OnlineSoftmax softmax[kM16];

  __device__ __forceinline__ MmaAttention(const Tile& of, unsigned char* memory)
      : tile(of),
        shared(memory),
        queries(left_address<true, typename Tile::Queries>(shared_address(memory), row_of_warp())),
        keys(right_address<true, Keys>(first_buffer(), 0)),
        values(right_address<false, Keys>(first_buffer() + STAGES * Keys::kBytes, 0)),
        tiles(of.tiles()),
        warp_row(row_of_warp()) {}

  __device__ __forceinline__ void run() {
#pragma unroll
    for (int i = 0; i < kM16 * kD16 * 8; ++i) {
      sums[i / 8 / kD16][i / 4 % (kD16 * 2)][i % 4] = 0.0f;
    }
    RowCopy<typename Tile::Queries, Tile::kHeadSize, kThreads>::start(shared_address(shared), tile.queries,
                                                                      tile.row);
    start_keys(0);
#pragma unroll 1
    for (int step = 0; step < STAGES - 1; ++step) {
      start_values(step);
      start_keys(step + 1);
    }
    // All but the newest 2 * STAGES - 2 of the copies have come where they are read.
#pragma unroll 1
    for (int step = 0; step < tiles; ++step) {
      wait_for_copies<2 * STAGES - 2>();
      __syncthreads();
      start_values(step + STAGES - 1);
      float scores[kM16][kN8][4];
      multiply_keys(scores, step);
      wait_for_copies<2 * STAGES - 2>();
      __syncthreads();
      start_keys(step + STAGES);
#pragma unroll
      for (int i = 0; i < kM16; ++i) {
        float factor[2];
        const int query = tile.row + warp_row + i * 16;
        tile.mask(scores[i], query, query, key_of(step));
        softmax[i].update(scores[i], tile.scale, factor);
        if constexpr (Tile::kDrops) {
          tile.dropout.template mark<false>(scores[i], query, key_of(step));
          tile.dropout.drop(scores[i]);
        }
        scale_rows(sums[i], factor);
      }
      multiply_values(scores, step);
    }
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kM16; ++i) {
      tile.store(sums[i], softmax[i], shared, warp_row + i * 16);
    }
  }

 private:
  static __device__ __forceinline__ int row_of_warp() { return int(threadIdx.x) / 32 * (kM16 * 16); }
  __device__ __forceinline__ unsigned int first_buffer() const {
    return shared_address(shared) + Tile::Queries::kBytes;
  }
  // The compiler makes faster code of this where it stands here and without a first key than where the tile has it.
  __device__ __forceinline__ int key_of(int step) const {
    const int tile_of_keys = tiles - 1 - step;
    if constexpr (Tile::kSkipsFirst) {
      return tile_of_keys * Tile::kBlockN + tile.first_key();
    }
    return tile_of_keys * Tile::kBlockN;
  }

  __device__ __forceinline__ void start(unsigned int buffers, const HeadRows<const T>& from, int step) const {
    if (step < tiles) {
      RowCopy<Keys, Tile::kHeadSize, kThreads>::start(buffers + step % STAGES * Keys::kBytes, from,
                                                      key_of(step));
    }
    close_copy_group();
  }
  __device__ __forceinline__ void start_keys(int step) const { start(first_buffer(), tile.keys, step); }
  __device__ __forceinline__ void start_values(int step) const {
    start(first_buffer() + STAGES * Keys::kBytes, tile.values, step);
  }

  __device__ __forceinline__ void multiply_keys(float (&scores)[kM16][kN8][4], int step) {
    const unsigned int keys_at = keys + step % STAGES * Keys::kBytes;
#pragma unroll
    for (int i = 0; i < kM16 * kN8 * 4; ++i) {
      scores[i / 4 / kN8][i / 4 % kN8][i % 4] = 0.0f;
    }
    if (QUERIES_IN_REGISTERS && step == 0) {
#pragma unroll
      for (int i = 0; i < kM16 * kD16; ++i) {
        load_left<true, typename Tile::Queries>(kept[i / kD16][i % kD16], queries, i / kD16 * 16,
                                                i % kD16 * 16);
      }
    }
#pragma unroll
    for (int k = 0; k < kD16; ++k) {
      unsigned int left[kM16][4];
#pragma unroll
      for (int i = 0; i < kM16; ++i) {
        if constexpr (QUERIES_IN_REGISTERS) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            left[i][e] = kept[i][k][e];
          }
        } else {
          load_left<true, typename Tile::Queries>(left[i], queries, i * 16, k * 16);
        }
      }
#pragma unroll
      for (int j = 0; j < kN8; j += 2) {
        unsigned int right[4];
        load_right_pair<true, Keys>(right, keys_at, j * 8, k * 16);
        multiply(scores, left, right, j);
      }
    }
  }

  __device__ __forceinline__ void multiply_values(const float (&weights)[kM16][kN8][4], int step) {
    const unsigned int values_at = values + step % STAGES * Keys::kBytes;
#pragma unroll
    for (int k = 0; k < kN8 / 2; ++k) {
      unsigned int left[kM16][4];
#pragma unroll
      for (int i = 0; i < kM16; ++i) {
        round_weights<T>(left[i], weights[i], k);
      }
#pragma unroll
      for (int j = 0; j < kD16 * 2; j += 2) {
        unsigned int right[4];
        load_right_pair<false, Keys>(right, values_at, j * 8, k * 16);
        multiply(sums, left, right, j);
      }
    }
  }

  template <int N8>
  static __device__ __forceinline__ void multiply(float (&to)[kM16][N8][4],
                                                  const unsigned int (&left)[kM16][4],
                                                  const unsigned int (&right)[4], int j) {
#pragma unroll
    for (int i = 0; i < kM16; ++i) {
      mma<T>(to[i][j], left[i], right[0], right[1]);
      mma<T>(to[i][j + 1], left[i], right[2], right[3]);
    }
  }
};
