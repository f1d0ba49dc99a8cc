// ENGINE 1: one warpgroup copies columns of a GradientTile to STAGES buffers, the others go with 64 rows each through
// all of them and multiply by wgmma. Weights and slopes are left operands in registers. Products run behind the
// computation of the warpgroup's own weights and slopes, and of the other ones'.
#pragma once

#include "gradient_tile.cuh"
#include "vector_io.cuh"
#include "warp_roles.cuh"
#include "wgmma_columns.cuh"

template <typename Tile, int STAGES>
struct WgmmaGradients {
  using T = typename Tile::T;
  using Rows = typename Tile::Rows;
  using Columns = typename Tile::Columns;
  static constexpr bool kOfKeys = Tile::kOfKeys, kOfRows = Tile::kOfRows, kOfMates = Tile::kOfMates;
  static constexpr bool kCapped = Tile::Scores::kCapped;
  static constexpr int kGroups = Tile::kBlock / 64;  // that multiply
  static constexpr int kN8 = Tile::kColumns / 8, kD8 = Columns::kColumns / 8;
  static_assert(kGroups == 2 || kGroups == 3, "registers are dealt out for these");
  static_assert(STAGES >= 2, "one buffer is read, one filled");

  // Rows and their mates, buffers of columns and mates, of the columns' logarithms and deltas where they are queries,
  // and for each buffer the barriers at which its copies have come, and at which all have read it. Heads beyond 128
  // leave no room for as many buffers of mates, which are read once and then filled again: they lie and have barriers
  // apart.
  static constexpr bool kApart = Tile::kHeadSize > 128 && kOfRows;
  static constexpr int kMateStages = kApart ? STAGES - 1 : STAGES;
  static constexpr int kBufferBytes = (kApart ? 1 : 2) * Columns::kBytes,
                       kFactsBytes = kOfKeys ? Tile::kColumns * 8 : 0;

  const Tile& tile;
  unsigned char* shared;
  const unsigned int rows, buffers, facts, barriers;
  const int begin, per_head, steps;

  __device__ __forceinline__ WgmmaGradients(const Tile& of, unsigned char* memory)
      : tile(of),
        shared(memory),
        rows(shared_address(memory)),
        buffers(rows + Tile::kLeftBytes),
        facts(buffers + STAGES * kBufferBytes + (kApart ? kMateStages * Columns::kBytes : 0)),
        barriers(facts + STAGES * kFactsBytes),
        begin(of.first_tile()),
        per_head(of.tiles()),
        steps(of.heads * per_head) {}

  // What the block computes: `of_rows`, and `of_mates` where the rows are keys.
  __device__ __forceinline__ void run(const HeadRows<T>& of_rows, const HeadRows<T>& of_mates,
                                      float slope_scale) const {
    if (threadIdx.x == 0) {
#pragma unroll
      for (int stage = 0; stage < STAGES; ++stage) {
        initialize_barrier(filled(stage), 128);
        initialize_barrier(emptied(stage), kGroups * 4);
      }
#pragma unroll
      for (int stage = 0; kApart && stage < kMateStages; ++stage) {
        initialize_barrier(mates_filled(stage), 128);
        initialize_barrier(mates_filled(stage) + 8, kGroups * 4);
      }
    }
    __syncthreads();
    if (threadIdx.x < 128) {
      give_up_registers<kGroups == 2 ? 24 : 32>();
      copy();
    } else {
      take_registers<kGroups == 2 ? 240 : 160>();
      multiply(of_rows, of_mates, slope_scale);
    }
  }

 private:
  __device__ __forceinline__ unsigned int columns(int step) const {
    return buffers + step % STAGES * kBufferBytes;
  }
  __device__ __forceinline__ unsigned int column_mates(int step) const {
    if constexpr (kApart) {
      return buffers + STAGES * kBufferBytes + step % kMateStages * Columns::kBytes;
    } else {
      return columns(step) + Columns::kBytes;
    }
  }
  __device__ __forceinline__ unsigned int logarithms(int step) const {
    return facts + step % STAGES * kFactsBytes;
  }
  __device__ __forceinline__ unsigned int deltas(int step) const {
    return logarithms(step) + Tile::kColumns * 4;
  }
  __device__ __forceinline__ unsigned int filled(int step) const { return barriers + step % STAGES * 16; }
  __device__ __forceinline__ unsigned int emptied(int step) const { return filled(step) + 8; }
  __device__ __forceinline__ unsigned int mates_filled(int step) const {
    return barriers + STAGES * 16 + step % kMateStages * 16;
  }

  // By 128 threads that have few registers. The rows come with the first columns.
  __device__ __forceinline__ void copy() const {
    using RowsCopy = RowCopy<Rows, Tile::kHeadSize, 128>;
    if (steps > 0) {
      RowsCopy::start(rows, tile.rows, tile.row);
      if constexpr (kOfRows) {
        RowsCopy::start(rows + Rows::kBytes, tile.row_mates, tile.row);
      }
    }
    const int first = begin * Tile::kColumns;
    int step = 0;
#pragma unroll 1
    for (int head = 0; head < tile.heads; ++head) {
#pragma unroll 1
      for (int column = first; column < first + per_head * Tile::kColumns; column += Tile::kColumns) {
        copy_columns(step, head, column);
        ++step;
      }
    }
    wait_for_copies<0>();
  }

  __device__ __forceinline__ void copy_columns(int step, int head, int column) const {
    using Copy = RowCopy<Columns, Tile::kHeadSize, 128>;
    wait_for_phase(emptied(step), step / STAGES % 2 ^ 1);
    Copy::start(columns(step), tile.columns_of(head), column);
    if constexpr (!kApart) {
      Copy::start(column_mates(step), tile.column_mates_of(head), column);
    }
    if constexpr (kOfKeys) {
      const int queries = tile.columns.rows;
      copy_facts(step, tile.facts + static_cast<long long>(head) * tile.facts_step + column,
                 queries - column);
    }
    arrive_when_copied(filled(step));
    if constexpr (kApart) {
      wait_for_phase(mates_filled(step) + 8, step / kMateStages % 2 ^ 1);
      Copy::start(column_mates(step), tile.column_mates_of(head), column);
      arrive_when_copied(mates_filled(step));
    }
  }

  // Beyond the last query all is zero, so that weights of 1 are multiplied with zeros and slopes are zero.
  __device__ __forceinline__ void copy_facts(int step, const QueryFacts* from, int left) const {
    if (int(threadIdx.x) < Tile::kColumns) {
      const bool inside = int(threadIdx.x) < left;
      copy_or_zero_async<4>(logarithms(step) + threadIdx.x * 4, &from[threadIdx.x].logarithm, inside);
      copy_or_zero_async<4>(deltas(step) + threadIdx.x * 4, &from[threadIdx.x].delta, inside);
    }
  }

  static __device__ __forceinline__ int warp_row() { return int(threadIdx.x) / 32 * 16 - 64; }

  __device__ __forceinline__ void multiply(const HeadRows<T>& of_rows, const HeadRows<T>& of_mates,
                                           float slope_scale) const {
    // The same in all lanes, as the compiler sees: descriptors then stay in uniform registers.
    const int group = __shfl_sync(0xffffffffu, int(threadIdx.x) / 128 - 1, 0);
    float sums[kOfRows ? kD8 : 1][4], mate_sums[kOfMates ? kD8 : 1][4];
    clear(sums);
    clear(mate_sums);
    go_through_columns(sums, mate_sums, rows + group * (64 * Rows::kPitch));
    meet(1 + group, 128);  // all of the warpgroup have read its rows
    if constexpr (kOfRows) {
      scale_rows(sums, {slope_scale, slope_scale});
      store_rows<Rows, Tile::kHeadSize>(sums, shared, warp_row(), of_rows, tile.row);
    }
    if constexpr (kOfMates) {
      if constexpr (Tile::kDrops) {
        tile.scale_mates(mate_sums);
      }
      store_rows<Rows, Tile::kHeadSize>(mate_sums, shared + Tile::kLeftBytes - Rows::kBytes, warp_row(),
                                        of_mates, tile.row);
    }
  }

  // `left`: the address of the warpgroup's rows.
  template <int ROWS, int MATES>
  __device__ __forceinline__ void go_through_columns(float (&sums)[ROWS][4], float (&mate_sums)[MATES][4],
                                                     unsigned int left) const {
    unsigned int left_weights[kN8 / 2][4], left_slopes[kN8 / 2][4];
    QueryFacts of_rows[2] = {};
    if constexpr (!kOfKeys) {
      const int first = tile.row + warp_row() + int(threadIdx.x) % 32 / 4;
      of_rows[0] = tile.facts_of(0, tile.rows.rows, first);
      of_rows[1] = tile.facts_of(0, tile.rows.rows, first + 8);
    }
    int at = 0, head = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait_for_phase(filled(step), step / STAGES % 2);
      publish_to_wgmma();
      float weights[kN8][4], slopes[kN8][4];
      multiply_along(weights, left, columns(step));
      if constexpr (kApart) {
        wait_for_phase(mates_filled(step), step / kMateStages % 2);
        publish_to_wgmma();
      }
      if constexpr (kOfRows) {
        multiply_along(slopes, left + Rows::kBytes, column_mates(step));
      }
      wait_for_wgmma<kOfRows ? 1 : 0>();
      hold_wgmma_result(weights);
      const int column = (begin + at) * Tile::kColumns;
      tile.mask(weights, tile.row + warp_row(), column);
      float damping[kCapped ? kN8 : 1][4];
      if constexpr (kCapped) {
        damp(damping, weights);
      }
      weigh(weights, of_rows, step);
      if constexpr (Tile::kDrops) {
        tile.mark_dropped(weights, tile.row + warp_row(), head, column);
      }
      if constexpr (kOfMates) {
        if constexpr (Tile::kDrops) {
          round_kept(left_weights, weights);
        } else {
          round(left_weights, weights);
        }
        if constexpr (kCapped) {
          multiply_by(weights, damping);
        }
        multiply_across(mate_sums, left_weights, column_mates(step));
        wait_for_wgmma<kOfRows ? 1 : 0>();
      } else {
        if constexpr (kCapped) {
          multiply_by(weights, damping);
        }
        finish_before_wait(weights);
        wait_for_wgmma<0>();
      }
      if constexpr (kApart) {
        if (threadIdx.x % 32 == 0) {
          arrive(mates_filled(step) + 8);
        }
      }
      if constexpr (kOfRows) {
        hold_wgmma_result(slopes);
        slope(slopes, weights, of_rows, step);
        round(left_slopes, slopes);
        multiply_across(sums, left_slopes, columns(step));
        wait_for_wgmma<0>();
      }
      hold_wgmma_result(sums);
      hold_wgmma_result(mate_sums);
      __syncwarp();  // every lane has read the facts
      if (threadIdx.x % 32 == 0) {
        arrive(emptied(step));
      }
      at = at + 1 < per_head ? at + 1 : 0;
      if constexpr (Tile::kDrops) {
        head += at == 0 ? 1 : 0;
      }
    }
  }

  // to = 64 rows * columns^T.
  static __device__ __forceinline__ void multiply_along(float (&to)[kN8][4], unsigned int left,
                                                        unsigned int right) {
    hold_wgmma_result(to);
    open_wgmma_group();
    wgmma<T, true, true, 0>(to, wgmma_operand(left, 16), wgmma_operand(right, 16));
#pragma unroll
    for (int k = 16; k < Tile::kHeadSize; k += 16) {
      wgmma<T, true, true>(to, wgmma_operand(left + k / 64 * Rows::kPanelBytes + k % 64 * 2, 16),
                           wgmma_operand(right + k / 64 * Columns::kPanelBytes + k % 64 * 2, 16));
    }
    close_wgmma_group();
  }

  // to += left * columns.
  static __device__ __forceinline__ void multiply_across(float (&to)[kD8][4],
                                                         const unsigned int (&left)[kN8 / 2][4],
                                                         unsigned int right) {
    hold_wgmma_result(to);
    open_wgmma_group();
#pragma unroll
    for (int k = 0; k < kN8 / 2; ++k) {
      add_product<T, Columns>(to, left[k], right + k * 16 * Columns::kPitch);
    }
    close_wgmma_group();
  }

  // Of the queries in this thread's columns 8 * j and the next one.
  __device__ __forceinline__ float2 load_pair(unsigned int facts_of_tile, int j) const {
    return *reinterpret_cast<const float2*>(shared + (facts_of_tile - rows) + j * 32 + threadIdx.x % 4 * 8);
  }

  // Scores become weights.
  __device__ __forceinline__ void weigh(float (&weights)[kN8][4], const QueryFacts (&of_rows)[2],
                                        int step) const {
#pragma unroll
    for (int j = 0; j < kN8; ++j) {
      const float2 pair = kOfKeys ? load_pair(logarithms(step), j) : float2{};
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float logarithm = kOfKeys ? (e % 2 == 0 ? pair.x : pair.y) : of_rows[e / 2].logarithm;
        weights[j][e] = exp2_approximate(fmaf(weights[j][e], tile.scale, -logarithm));
      }
    }
  }

  // The slopes of capped scores, and what weights become by them.
  static __device__ __forceinline__ void damp(float (&to)[kN8][4], const float (&scores)[kN8][4]) {
#pragma unroll
    for (int i = 0; i < kN8 * 4; ++i) {
      to[i / 4][i % 4] = Tile::Scores::slope(scores[i / 4][i % 4]);
    }
  }
  static __device__ __forceinline__ void multiply_by(float (&weights)[kN8][4],
                                                     const float (&damping)[kN8][4]) {
#pragma unroll
    for (int i = 0; i < kN8 * 4; ++i) {
      weights[i / 4][i % 4] *= damping[i / 4][i % 4];
    }
  }

  // Products of mates become slopes.
  __device__ __forceinline__ void slope(float (&slopes)[kN8][4], const float (&weights)[kN8][4],
                                        const QueryFacts (&of_rows)[2], int step) const {
#pragma unroll
    for (int j = 0; j < kN8; ++j) {
      const float2 pair = kOfKeys ? load_pair(deltas(step), j) : float2{};
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float delta = kOfKeys ? (e % 2 == 0 ? pair.x : pair.y) : of_rows[e / 2].delta;
        if constexpr (Tile::kDrops) {
          slopes[j][e] = tile.slope_of_marked(weights[j][e], slopes[j][e], delta);
        } else {
          slopes[j][e] = weights[j][e] * (slopes[j][e] - delta);
        }
      }
    }
  }

  // Without the weights that dropout took away.
  __device__ __forceinline__ void round_kept(unsigned int (&to)[kN8 / 2][4],
                                             const float (&weights)[kN8][4]) const {
    float kept[kN8][4];
#pragma unroll
    for (int i = 0; i < kN8 * 4; ++i) {
      kept[i / 4][i % 4] = weights[i / 4][i % 4];
    }
    tile.dropout.drop(kept);
    round(to, kept);
  }

  static __device__ __forceinline__ void round(unsigned int (&to)[kN8 / 2][4], const float (&from)[kN8][4]) {
#pragma unroll
    for (int k = 0; k < kN8 / 2; ++k) {
      round_weights<T>(to[k], from, k);
    }
  }

  // The assembler would put the weights' computation after the wait for the products that it runs behind. It moves
  // no store: this one depends on each weight, and as their bits but the sign make no negative number it never takes
  // place.
  __device__ __forceinline__ void finish_before_wait(const float (&weights)[kN8][4]) const {
    unsigned int bits = 0;
#pragma unroll
    for (int i = 0; i < kN8 * 4; ++i) {
      bits |= __float_as_uint(Tile::kDrops ? fabsf(weights[i / 4][i % 4]) : weights[i / 4][i % 4]);
    }
    asm volatile("{.reg .pred never; setp.lt.s32 never, %0, 0; @never st.shared.u32 [%1], %0;}" ::"r"(bits),
                 "r"(barriers)
                 : "memory");
  }
};
