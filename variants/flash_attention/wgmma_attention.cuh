// Attention by wgmma: one warpgroup copies keys and values to STAGES buffers each (row_sources.cuh), the others
// multiply 64 queries each. While the tensor cores multiply the weights of one tile with its values, and queries with
// the next keys, a warpgroup turns scores into weights; where TAKE_TURNS, warpgroups start their products one after
// the other, so that one has the tensor cores while another one computes weights.
//
// PERSISTENT blocks go from tile to tile of queries. Keys and values of the next tile are copied while this one's result
// is computed, a warpgroup's queries as soon as it has multiplied these with all keys.
#pragma once

#include "query_tile.cuh"
#include "row_sources.cuh"
#include "vector_io.cuh"
#include "wgmma_columns.cuh"

template <typename Tile, typename Source, int STAGES, bool TAKE_TURNS, bool PERSISTENT = false>
struct WgmmaAttention {
  using T = typename Tile::T;
  using Keys = typename Tile::Keys;
  static constexpr int kGroups = Tile::kBlockM / 64;  // that multiply
  static constexpr int kN8 = Tile::kBlockN / 8, kD8 = Keys::kColumns / 8;
  static constexpr int kBufferBytes = 2 * STAGES * Keys::kBytes;
  static_assert(kGroups == 2 || kGroups == 3, "registers are dealt out for these");
  static_assert(Tile::kBlockN % 16 == 0 && Tile::kHeadSize % 16 == 0, "whole instructions");

  // The copies of keys or of values: buffers, and for each the barriers at which its copies have come, and at
  // which all have read it.
  struct Ring {
    unsigned int buffers, barriers;

    __device__ __forceinline__ unsigned int buffer(int step) const {
      return buffers + step % STAGES * Keys::kBytes;
    }
    __device__ __forceinline__ unsigned int filled(int step) const { return barriers + step % STAGES * 16; }
    __device__ __forceinline__ unsigned int emptied(int step) const { return filled(step) + 8; }

    __device__ __forceinline__ void initialize() const {
#pragma unroll
      for (int stage = 0; stage < STAGES; ++stage) {
        initialize_barrier(filled(stage), Source::kThreads);
        initialize_barrier(emptied(stage), kGroups * 4);
      }
    }
    // `others`: bytes of what was started before for the same barrier.
    __device__ __forceinline__ void fill(int step, const typename Source::Rows& from, int row,
                                         int others = 0) const {
      wait_for_phase(emptied(step), step / STAGES % 2 ^ 1);
      Source::template start<Keys>(buffer(step), from, row, filled(step));
      Source::arrive(filled(step), Keys::kBytes + others);
    }
    __device__ __forceinline__ void wait(int step) const {
      wait_for_phase(filled(step), step / STAGES % 2);
      Source::publish();
    }
    __device__ __forceinline__ void release(int step) const {
      if (threadIdx.x % 32 == 0) {
        arrive(emptied(step));
      }
    }
  };

  // The results of PERSISTENT blocks have rows of their own, behind the queries.
  static constexpr int kRowBytes = (PERSISTENT ? 2 : 1) * Tile::Queries::kBytes;

  const Tile& tile;
  const Source source;
  unsigned char* shared;
  const unsigned int queries;
  const Ring keys, values;
  const int tiles;
  const int first, number;  // steps and tiles of queries that the block did before, 0 unless PERSISTENT

  __device__ __forceinline__ WgmmaAttention(const Tile& of, const Source& from, unsigned char* memory,
                                            int steps_before = 0, int tiles_before = 0)
      : tile(of),
        source(from),
        shared(memory),
        queries(shared_address(memory)),
        keys{queries + kRowBytes, queries + kRowBytes + kBufferBytes},
        values{keys.buffers + STAGES * Keys::kBytes, keys.barriers + STAGES * 16},
        tiles(of.tiles()),
        first(steps_before),
        number(tiles_before) {}

  // The tiles of a persistent block: work.tile(item) and work.source(item) of each item < work.items that
  // work.has(item).
  template <typename Work>
  static __device__ __forceinline__ void run_all(const Work& work, unsigned char* memory) {
    static_assert(PERSISTENT && kGroups == 2 && Source::kThreads == 1,
                  "registers and barriers are for these");
    if (threadIdx.x == 0) {
      const Tile tile = work.tile(0);
      WgmmaAttention(tile, work.source(0), memory).initialize();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
      give_up_registers<Source::kRegisters>();
      if (threadIdx.x == 0) {
        for_all(work, memory, [](const WgmmaAttention& one) { one.copy(); });
      }
    } else {
      take_registers<252 - Source::kRegisters / 2>();
      for_all(work, memory, [](const WgmmaAttention& one) { one.multiply(); });
    }
  }

  __device__ __forceinline__ void run() {
    if (threadIdx.x == 0) {
      initialize();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
      give_up_registers<kGroups == 2 ? Source::kRegisters : 32>();
      if (threadIdx.x < Source::kThreads) {
        copy();
      }
    } else {
      take_registers<kGroups == 2 ? 252 - Source::kRegisters / 2 : 160>();
      multiply();
    }
  }

 private:
  __device__ __forceinline__ void initialize() const {
    keys.initialize();
    values.initialize();
    if constexpr (PERSISTENT) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        initialize_barrier(queries_filled(group), Source::kThreads);
        initialize_barrier(queries_emptied(group), 4);
      }
    }
    publish_barriers();
  }

  template <typename Work, typename Do>
  static __device__ __forceinline__ void for_all(const Work& work, unsigned char* memory, Do act) {
    int steps = 0, tiles = 0;
#pragma unroll 1
    for (int item = blockIdx.x; item < work.items; item += int(gridDim.x)) {
      if (!work.has(item)) {
        continue;
      }
      const Tile tile = work.tile(item);
      const WgmmaAttention one(tile, work.source(item), memory, steps, tiles);
      act(one);
      steps += one.tiles;
      tiles += one.tiles > 0 ? 1 : 0;
    }
  }

  // The barriers of a warpgroup's 64 queries.
  __device__ __forceinline__ unsigned int queries_filled(int group) const {
    return values.barriers + STAGES * 16 + group * 16;
  }
  __device__ __forceinline__ unsigned int queries_emptied(int group) const {
    return queries_filled(group) + 8;
  }

  // Each warpgroup's queries as soon as it has done with those before.
  __device__ __forceinline__ void copy_queries() const {
#pragma unroll 1
    for (int group = 0; group < kGroups; ++group) {
      wait_for_phase(queries_emptied(group), number % 2 ^ 1);
      Source::template start<typename Tile::Queries>(queries + group * (64 * Tile::Queries::kPitch),
                                                     source.queries, tile.row + group * 64,
                                                     queries_filled(group));
      Source::arrive(queries_filled(group), Tile::Queries::kBytes / kGroups);
    }
  }
  __device__ __forceinline__ void wait_for_queries() const {
    if constexpr (PERSISTENT) {
      wait_for_phase(queries_filled(group()), number % 2);
    }
  }
  __device__ __forceinline__ void release_queries() const {
    if (PERSISTENT && threadIdx.x % 32 == 0) {
      arrive(queries_emptied(group()));
    }
  }

  // The compiler makes faster code of this where it stands here and without a first key than where the tile has it.
  __device__ __forceinline__ int key_of(int step) const {
    const int tile_of_keys = tiles - 1 - step;
    if constexpr (Tile::kSkipsFirst) {
      return tile_of_keys * Tile::kBlockN + tile.first_key();
    }
    return tile_of_keys * Tile::kBlockN;
  }

  // In the order in which they are read. The queries come with the first keys.
  __device__ __forceinline__ void copy() const {
    if (PERSISTENT && tiles > 0) {
      keys.fill(first, source.keys, key_of(0));
      copy_queries();
    } else if (tiles > 0) {
      Source::template start<typename Tile::Queries>(queries, source.queries, tile.row, keys.filled(0));
      keys.fill(0, source.keys, key_of(0), Tile::Queries::kBytes);
    }
#pragma unroll 1
    for (int step = 1; step < tiles; ++step) {
      keys.fill(first + step, source.keys, key_of(step));
      values.fill(first + step - 1, source.values, key_of(step - 1));
    }
    if (tiles > 0) {
      values.fill(first + tiles - 1, source.values, Tile::kSkipsFirst ? tile.first_key() : 0);
    }
    Source::finish();
  }

  static __device__ __forceinline__ int group() { return int(threadIdx.x) / 128 - 1; }
  static __device__ __forceinline__ int warp_row() { return int(threadIdx.x) / 32 * 16 - 64; }

  __device__ __forceinline__ void multiply() const {
    float sums[kD8][4], scores[kN8][4], factor[2];
    unsigned int weights[kN8 / 2][4];
    OnlineSoftmax softmax;
#pragma unroll
    for (int i = 0; i < kD8 * 4; ++i) {
      sums[i / 4][i % 4] = 0.0f;
    }
    if (tiles > 0) {
      wait_for_queries();
      keys.wait(first);
      multiply_keys(scores, 0);
      wait_for_wgmma<0>();
      hold_wgmma_result(scores);
      keys.release(first);
      weigh(scores, softmax, factor, 0);
      drop(scores, 0);
      round(weights, scores);
      begin_turns();
#pragma unroll 1
      for (int step = 1; step < tiles; ++step) {
        keys.wait(first + step);
        begin_turn();
        multiply_keys(scores, step);
        values.wait(first + step - 1);
        multiply_values(sums, weights, step - 1);
        end_turn(step);
        wait_for_wgmma<1>();
        hold_wgmma_result(scores);
        keys.release(first + step);
        weigh(scores, softmax, factor, step);
        drop(scores, step);
        finish_before_wait(softmax);
        wait_for_wgmma<0>();
        hold_wgmma_result(sums);
        values.release(first + step - 1);
        scale_rows(sums, factor);
        round(weights, scores);
      }
      release_queries();
      values.wait(first + tiles - 1);
      multiply_values(sums, weights, tiles - 1);
      wait_for_wgmma<0>();
      hold_wgmma_result(sums);
      if constexpr (PERSISTENT) {
        values.release(first + tiles - 1);
      }
    }
    if constexpr (PERSISTENT) {
      tile.store(sums, softmax, shared + Tile::Queries::kBytes, warp_row());
    } else {
      meet(kGroups + 1 + group(), 128);  // all of the warpgroup have read the queries
      tile.store(sums, softmax, shared, warp_row());
    }
  }

  // The warpgroups take their turns in order, at a meeting of each with the one before it.
  __device__ __forceinline__ void begin_turns() const {
    if (TAKE_TURNS && group() == kGroups - 1 && tiles > 1) {
      announce(1, 256);
    }
  }
  static __device__ __forceinline__ void begin_turn() {
    if constexpr (TAKE_TURNS) {
      meet(group() + 1, 256);
    }
  }
  __device__ __forceinline__ void end_turn(int step) const {
    if (TAKE_TURNS && (group() < kGroups - 1 || step < tiles - 1)) {
      announce((group() + 1) % kGroups + 1, 256);
    }
  }

  __device__ __forceinline__ void multiply_keys(float (&scores)[kN8][4], int step) const {
    using Queries = typename Tile::Queries;
    const unsigned int left = queries + group() * (64 * Queries::kPitch), right = keys.buffer(first + step);
    hold_wgmma_result(scores);
    open_wgmma_group();
    wgmma<T, true, true, 0>(scores, wgmma_operand(left, 16), wgmma_operand(right, 16));
#pragma unroll
    for (int k = 16; k < Tile::kHeadSize; k += 16) {
      wgmma<T, true, true>(scores, wgmma_operand(left + k / 64 * Queries::kPanelBytes + k % 64 * 2, 16),
                           wgmma_operand(right + k / 64 * Keys::kPanelBytes + k % 64 * 2, 16));
    }
    close_wgmma_group();
  }

  __device__ __forceinline__ void multiply_values(float (&sums)[kD8][4],
                                                  const unsigned int (&weights)[kN8 / 2][4], int step) const {
    hold_wgmma_result(sums);
    open_wgmma_group();
#pragma unroll
    for (int k = 0; k < kN8 / 2; ++k) {
      add_product<T, Keys>(sums, weights[k], values.buffer(first + step) + k * 16 * Keys::kPitch);
    }
    close_wgmma_group();
  }

  __device__ __forceinline__ void weigh(float (&scores)[kN8][4], OnlineSoftmax& softmax, float (&factor)[2],
                                        int step) const {
    tile.mask(scores, tile.row + group() * 64, tile.row + warp_row(), key_of(step));
    softmax.update(scores, tile.scale, factor);
  }

  __device__ __forceinline__ void drop(float (&weights)[kN8][4], int step) const {
    if constexpr (Tile::kDrops) {
      tile.dropout.template mark<false>(weights, tile.row + warp_row(), key_of(step));
      tile.dropout.drop(weights);
    }
  }

  // The assembler would put all of the weights' computation after the wait for the products that it runs behind.
  // It moves no store: this one depends on each weight, and as sums are not negative it never takes place.
  __device__ __forceinline__ void finish_before_wait(const OnlineSoftmax& softmax) const {
    asm volatile(
        "{.reg .pred never; setp.lt.f32 never, %0, 0f00000000; @never st.shared.f32 [%1], %0;}" ::"f"(
            softmax.sum[0] + softmax.sum[1]),
        "r"(queries)
        : "memory");
  }

  static __device__ __forceinline__ void round(unsigned int (&weights)[kN8 / 2][4],
                                               const float (&scores)[kN8][4]) {
#pragma unroll
    for (int k = 0; k < kN8 / 2; ++k) {
      round_weights<T>(weights[k], scores, k);
    }
  }
};
