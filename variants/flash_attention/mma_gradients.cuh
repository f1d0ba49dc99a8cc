// ENGINE 0: each warp goes with 16 rows of a GradientTile through all columns and multiplies by mma.sync. Columns go
// through STAGES buffers.
#pragma once

#include "gradient_tile.cuh"
#include "mma.cuh"
#include "vector_io.cuh"

// 16 rows of `to` += left * right, `left` in shared memory.
template <int D, typename T, typename Left, typename Right, int N8>
__device__ __forceinline__ void multiply_tiles(float (&to)[N8][4], unsigned int left, unsigned int right) {
#pragma unroll
  for (int k = 0; k < D; k += 16) {
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

template <typename Tile, int STAGES>
struct MmaGradients {
  using T = typename Tile::T;
  using Rows = typename Tile::Rows;
  using Columns = typename Tile::Columns;
  static constexpr bool kOfKeys = Tile::kOfKeys, kOfRows = Tile::kOfRows, kOfMates = Tile::kOfMates;
  static constexpr int kThreads = Tile::kBlock * 2, kN8 = Tile::kColumns / 8;
  static constexpr int kHeadSize = Tile::kHeadSize, kD8 = kHeadSize / 8;
  static_assert(STAGES >= 2, "one buffer is read, one filled");

  const Tile& tile;
  unsigned char* shared;
  const unsigned int tiles;
  const int begin, per_head, steps;

  __device__ __forceinline__ MmaGradients(const Tile& of, unsigned char* memory)
      : tile(of),
        shared(memory),
        tiles(shared_address(memory)),
        begin(of.first_tile()),
        per_head(of.tiles()),
        steps(of.heads * per_head) {}

  // What the block computes: `of_rows`, and `of_mates` where the rows are keys.
  __device__ __forceinline__ void run(const HeadRows<T>& of_rows, const HeadRows<T>& of_mates,
                                      float slope_scale) const {
    const int warp_row = int(threadIdx.x) / 32 * 16;
    const unsigned int left = left_address<true, Rows>(tiles, warp_row);
    float sums[kOfRows ? kD8 : 1][4], mate_sums[kOfMates ? kD8 : 1][4];
    clear(sums);
    clear(mate_sums);
    RowCopy<Rows, kHeadSize, kThreads>::start(tiles, tile.rows, tile.row);
    if constexpr (kOfRows) {
      RowCopy<Rows, kHeadSize, kThreads>::start(tiles + Rows::kBytes, tile.row_mates, tile.row);
    }
#pragma unroll 1
    for (int step = 0; step < STAGES - 1; ++step) {
      start(step);
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait_for_copies<STAGES - 2>();
      __syncthreads();
      start(step + STAGES - 1);
      const int head = step / per_head, column = (begin + step % per_head) * Tile::kColumns;
      const unsigned int along = right_address<true, Columns>(buffer(step), 0);
      const unsigned int across = right_address<false, Columns>(buffer(step), 0);
      float weights[kN8][4], slopes[kN8][4];
      clear(weights);
      clear(slopes);
      multiply_tiles<kHeadSize, T, Rows, Columns>(weights, left, along);
      if constexpr (kOfRows) {
        multiply_tiles<kHeadSize, T, Rows, Columns>(slopes, left + Rows::kBytes, along + Columns::kBytes);
      }
      tile.mask(weights, tile.row + warp_row, column);
      weigh(weights, slopes, tile.row + warp_row, head, column);
      if constexpr (kOfMates) {
        if constexpr (Tile::kDrops) {
          tile.dropout.drop(weights);
        }
        multiply_rows<T, Columns>(mate_sums, weights, across + Columns::kBytes);
      }
      if constexpr (kOfRows) {
        multiply_rows<T, Columns>(sums, slopes, across);
      }
    }
    wait_for_copies<0>();
    __syncthreads();
    if constexpr (kOfRows) {
      scale_rows(sums, {slope_scale, slope_scale});
      store_rows<Rows, kHeadSize>(sums, shared, warp_row, of_rows, tile.row);
    }
    if constexpr (kOfMates) {
      if constexpr (Tile::kDrops) {
        tile.scale_mates(mate_sums);
      }
      store_rows<Rows, kHeadSize>(mate_sums, shared + Tile::kLeftBytes - Rows::kBytes, warp_row, of_mates,
                                  tile.row);
    }
  }

 private:
  __device__ __forceinline__ unsigned int buffer(int step) const {
    return tiles + Tile::kLeftBytes + step % STAGES * (2 * Columns::kBytes);
  }

  __device__ __forceinline__ void start(int step) const {
    if (step < steps) {
      const int head = step / per_head, column = (begin + step % per_head) * Tile::kColumns;
      using Copy = RowCopy<Columns, kHeadSize, kThreads>;
      Copy::start(buffer(step), tile.columns_of(head), column);
      Copy::start(buffer(step) + Columns::kBytes, tile.column_mates_of(head), column);
    }
    close_copy_group();
  }

  // Scores become weights, products of mates become slopes.
  __device__ __forceinline__ void weigh(float (&weights)[kN8][4], float (&slopes)[kN8][4], int first,
                                        int head, int column) const {
    const int lane = int(threadIdx.x) % 32;
    QueryFacts of_rows[2];
    if constexpr (!kOfKeys) {
      of_rows[0] = tile.facts_of(0, tile.rows.rows, first + lane / 4);
      of_rows[1] = tile.facts_of(0, tile.rows.rows, first + lane / 4 + 8);
    }
    float signs[Tile::kDrops ? kN8 : 1][4];  // of the weights
    if constexpr (Tile::kDrops) {
#pragma unroll
      for (int i = 0; i < kN8 * 4; ++i) {
        signs[i / 4][i % 4] = 1.0f;
      }
      tile.mark_dropped(signs, first, head, column);
    }
#pragma unroll
    for (int j = 0; j < kN8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        QueryFacts of_column;
        if constexpr (kOfKeys) {
          of_column = tile.facts_of(head, tile.columns.rows, column + j * 8 + lane % 4 * 2 + e);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const QueryFacts query = kOfKeys ? of_column : of_rows[half];
          const float score = weights[j][half * 2 + e];
          const float weight = exp2_approximate(fmaf(score, tile.scale, -query.logarithm));
          float& slope = slopes[j][half * 2 + e];
          if constexpr (Tile::kDrops) {
            weights[j][half * 2 + e] = weight * signs[j][half * 2 + e];
            slope = tile.slope_of_marked(weights[j][half * 2 + e], slope, query.delta);
          } else {
            weights[j][half * 2 + e] = weight;
            slope = weight * (slope - query.delta);
          }
          if constexpr (Tile::Scores::kCapped) {
            slope *= Tile::Scores::slope(score);
          }
        }
      }
    }
  }
};
