// Gradients by wgmma: threads of one warpgroup copy columns of a GradientTile to STAGES buffers (row_sources.cuh), the
// other warpgroups go with 64 rows each through all of them. Weights and slopes are left operands in registers, and
// products run behind the computation of weights and slopes.
#pragma once

#include "gradient_tile.cuh"
#include "mma.cuh"
#include "row_sources.cuh"
#include "vector_io.cuh"
#include "wgmma_columns.cuh"

template <typename Tile, typename Source, int STAGES>
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

  // Registers of a thread that multiplies, and of one that copies. Copies with cp.async need more than the 24 that 240
  // leave; heads of 80 to 128 elements need the 240.
  static constexpr int kRegisters = kGroups == 3 ? 160 : (Source::kThreads == 1 || kD8 == 16 ? 240 : 232);
  static constexpr int kCopierRegisters = kGroups == 3 ? 32 : 504 - 2 * kRegisters;

  // With up to 128 elements a head, and without dropout, the next tile's scores are started before the slopes' own
  // product. Where what is then alive fits in the registers, that product runs on behind the next tile's weights.
  static constexpr int kAlive = (kOfRows + kOfMates) * (kD8 * 4 + kN8 * 2) + kN8 * (kCapped ? 12 : 8);
  static constexpr bool kEarly = Tile::kHeadSize <= 128 && !Tile::kDrops;
  static constexpr bool kAhead = kEarly && kAlive + 28 <= kRegisters;

  // Tiles of 64 columns multiply rows and their mates from registers where those fit too: only columns and their
  // mates are then read from shared memory.
  static constexpr bool kRowsKept = kAhead && kN8 == 8 && kAlive + Tile::kHeadSize / 2 + 28 <= kRegisters;
  using RowParts = unsigned int[kRowsKept ? Tile::kHeadSize / 16 : 1][4];

  // Threads that copy: those of the source, or a warp where these are fewer, for the columns' logarithms and deltas
  // where columns are queries.
  static constexpr bool kFactsApart = kOfKeys && Source::kThreads < 32;
  static constexpr int kCopiers = Source::kThreads < 32 ? 32 : Source::kThreads;
  // Heads beyond 128 leave no room for as many buffers of mates.
  static constexpr int kMateStages = Tile::kHeadSize > 128 && kOfRows ? STAGES - 1 : STAGES;
  static constexpr int kFactsBytes = kOfKeys ? Tile::kColumns * 8 : 0;

  // Buffers for columns or for their mates, and for each the barriers at which its copies have come, and at which all
  // have read it.
  template <int BUFFERS>
  struct Ring {
    unsigned int buffers, barriers;

    __device__ __forceinline__ unsigned int buffer(int step) const {
      return buffers + step % BUFFERS * Columns::kBytes;
    }
    __device__ __forceinline__ unsigned int filled(int step) const { return barriers + step % BUFFERS * 16; }
    __device__ __forceinline__ unsigned int emptied(int step) const { return filled(step) + 8; }

    __device__ __forceinline__ void initialize(int copiers) const {
#pragma unroll
      for (int stage = 0; stage < BUFFERS; ++stage) {
        initialize_barrier(filled(stage), copiers);
        initialize_barrier(emptied(stage), kGroups * 4);
      }
    }
    __device__ __forceinline__ void wait_to_fill(int step) const {
      wait_for_phase(emptied(step), step / BUFFERS % 2 ^ 1);
    }
    __device__ __forceinline__ void wait(int step) const {
      wait_for_phase(filled(step), step / BUFFERS % 2);
      Source::publish();
    }
    __device__ __forceinline__ void release(int step) const {
      __syncwarp();  // every lane has read the facts
      if (threadIdx.x % 32 == 0) {
        arrive(emptied(step));
      }
    }
  };

  const Tile& tile;
  const GradientRows<Source>& source;
  unsigned char* shared;
  const unsigned int rows;
  const Ring<STAGES> columns;
  const Ring<kMateStages> mates;
  const unsigned int facts;
  const int begin, per_head, steps;

  __device__ __forceinline__ WgmmaGradients(const Tile& of, const GradientRows<Source>& from,
                                            unsigned char* memory)
      : tile(of),
        source(from),
        shared(memory),
        rows(shared_address(memory)),
        columns{rows + Tile::kLeftBytes,
                rows + Tile::kLeftBytes + (STAGES + kMateStages) * Columns::kBytes + STAGES * kFactsBytes},
        mates{columns.buffers + STAGES * Columns::kBytes, columns.barriers + STAGES * 16},
        facts(mates.buffers + kMateStages * Columns::kBytes),
        begin(of.first_tile()),
        per_head(of.tiles()),
        steps(of.heads * per_head) {}

  // What the block computes: `of_rows`, and `of_mates` where the rows are keys.
  __device__ __forceinline__ void run(const HeadRows<T>& of_rows, const HeadRows<T>& of_mates,
                                      float slope_scale) const {
    if (threadIdx.x == 0) {
      columns.initialize(Source::kThreads + (kFactsApart ? kCopiers : 0));
      mates.initialize(Source::kThreads);
      publish_barriers();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
      give_up_registers<kCopierRegisters>();
      if (threadIdx.x < kCopiers) {
        copy();
      }
    } else {
      take_registers<kRegisters>();
      multiply(of_rows, of_mates, slope_scale);
    }
  }

 private:
  __device__ __forceinline__ unsigned int logarithms(int step) const {
    return facts + step % STAGES * kFactsBytes;
  }
  __device__ __forceinline__ unsigned int deltas(int step) const {
    return logarithms(step) + Tile::kColumns * 4;
  }

  // In the order in which they are read. Rows and their mates come with the first columns and mates.
  __device__ __forceinline__ void copy() const {
    if (steps > 0 && threadIdx.x < Source::kThreads) {
      Source::template start<Rows>(rows, source.rows, tile.row, columns.filled(0));
      if constexpr (kOfRows) {
        Source::template start<Rows>(rows + Rows::kBytes, source.row_mates, tile.row, mates.filled(0));
      }
    }
    const int first = begin * Tile::kColumns;
    int step = 0;
#pragma unroll 1
    for (int head = 0; head < tile.heads; ++head) {
#pragma unroll 1
      for (int column = first; column < first + per_head * Tile::kColumns; column += Tile::kColumns) {
        const int others = step == 0 ? Rows::kBytes : 0;
        columns.wait_to_fill(step);
        if constexpr (kOfKeys) {
          copy_facts(step, tile.facts + static_cast<long long>(head) * tile.facts_step + column,
                     tile.columns.rows - column);
        }
        fill(columns, step, Source::of_head(source.columns, head, tile.head_step), column, others);
        mates.wait_to_fill(step);
        fill(mates, step, Source::of_head(source.column_mates, head, tile.mate_head_step), column,
             kOfRows ? others : 0);
        ++step;
      }
    }
    wait_for_copies<0>();
  }

  template <int BUFFERS>
  static __device__ __forceinline__ void fill(const Ring<BUFFERS>& ring, int step,
                                              const typename Source::Rows& from, int column, int others) {
    if (threadIdx.x < Source::kThreads) {
      Source::template start<Columns>(ring.buffer(step), from, column, ring.filled(step));
      Source::arrive(ring.filled(step), Columns::kBytes + others);
    }
  }

  // Beyond the last query all is zero, so that weights of 1 are multiplied with zeros and slopes are zero.
  __device__ __forceinline__ void copy_facts(int step, const QueryFacts* from, int left) const {
#pragma unroll
    for (int first = 0; first < Tile::kColumns; first += kCopiers) {
      const int query = first + int(threadIdx.x);
      if (Tile::kColumns % kCopiers == 0 || query < Tile::kColumns) {
        copy_or_zero_async<4>(logarithms(step) + query * 4, &from[query].logarithm, query < left);
        copy_or_zero_async<4>(deltas(step) + query * 4, &from[query].delta, query < left);
      }
    }
    if constexpr (kFactsApart) {
      arrive_when_copied(columns.filled(step));
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

  // A warpgroup's way through the columns. `left`: the address of its rows.
  struct Walk {
    unsigned int left;
    RowParts parts, mate_parts;  // kRowsKept: of the warp's rows and of their mates
    QueryFacts of_rows[2];
    int step, at, head;  // at: of the head's tiles; head: of those that the rows meet
  };

  template <int ROWS, int MATES>
  __device__ __forceinline__ void go_through_columns(float (&sums)[ROWS][4], float (&mate_sums)[MATES][4],
                                                     unsigned int left) const {
    if (steps == 0) {
      return;
    }
    Walk walk = {left, {}, {}, {}, 0, 0, 0};
    if constexpr (kRowsKept) {
      columns.wait(0);
      load_parts(walk.parts, rows);
      mates.wait(0);
      load_parts(walk.mate_parts, rows + Rows::kBytes);
    }
    if constexpr (!kOfKeys) {
      const int first = tile.row + warp_row() + int(threadIdx.x) % 32 / 4;
      walk.of_rows[0] = tile.facts_of(0, tile.rows.rows, first);
      walk.of_rows[1] = tile.facts_of(0, tile.rows.rows, first + 8);
    }
    float weights[kN8][4];
    hold_wgmma_result(sums);
    hold_wgmma_result(mate_sums);
    if constexpr (kEarly) {
      score(weights, walk, 0);
      wait_for_wgmma<0>();
      hold_wgmma_result(weights);
    }
    if constexpr (kAhead) {
      take_step<true>(sums, mate_sums, weights, walk);
    }
#pragma unroll 1
    while (walk.step < steps) {
      take_step<false>(sums, mate_sums, weights, walk);
    }
    if constexpr (kAhead) {
      wait_for_wgmma<0>();
      hold_wgmma_result(sums);
    }
  }

  // kEarly: `weights` has the scores of this tile, and then of the next one.
  template <bool FIRST, int ROWS, int MATES>
  __device__ __forceinline__ void take_step(float (&sums)[ROWS][4], float (&mate_sums)[MATES][4],
                                            float (&weights)[kN8][4], Walk& walk) const {
    const int step = walk.step, column = (begin + walk.at) * Tile::kColumns;
    unsigned int left_weights[kN8 / 2][4], left_slopes[kN8 / 2][4];
    float slopes[kN8][4], damping[kCapped ? kN8 : 1][4];
    if constexpr (!kEarly) {
      score(weights, walk, step);
    }
    if constexpr (kOfRows) {
      mates.wait(step);
      multiply_along(slopes, walk.left + Rows::kBytes, walk.mate_parts, mates.buffer(step));
    }
    if constexpr (!kEarly) {
      wait_for_wgmma<kOfRows ? 1 : 0>();
      hold_wgmma_result(weights);
    }
    tile.mask(weights, tile.row + warp_row(), column);
    if constexpr (kCapped) {
      damp(damping, weights);
    }
    weigh(weights, walk.of_rows, step);
    if constexpr (Tile::kDrops) {
      tile.mark_dropped(weights, tile.row + warp_row(), walk.head, column);
    }
    if constexpr (kOfMates && Tile::kDrops) {
      round_kept(left_weights, weights);
    } else if constexpr (kOfMates) {
      round(left_weights, weights);
    }
    if constexpr (kCapped) {
      multiply_by(weights, damping);
    }
    if constexpr (kOfMates) {
      if constexpr (!kOfRows) {
        mates.wait(step);
      }
      multiply_across(mate_sums, left_weights, mates.buffer(step));
      wait_for_wgmma<1>();
    } else {
      finish_before_wait(weights);
      wait_for_wgmma<0>();
      mates.release(step);
    }
    if constexpr (kOfRows) {
      hold_wgmma_result(slopes);
      if (kAhead && !FIRST) {
        columns.release(step - 1);
      }
      slope(slopes, weights, walk.of_rows, step);
      round(left_slopes, slopes);
    }
    if (kEarly && step + 1 < steps) {
      score(weights, walk, step + 1);
    }
    if constexpr (kOfRows) {
      multiply_across(sums, left_slopes, columns.buffer(step));
    }
    wait_for_wgmma<kAhead ? 1 : 0>();
    if constexpr (kEarly) {
      hold_wgmma_result(weights);
    }
    hold_wgmma_result(mate_sums);
    if constexpr (kOfMates) {
      mates.release(step);
    }
    if constexpr (!kAhead) {
      hold_wgmma_result(sums);
      columns.release(step);
    }
    walk.step = step + 1;
    walk.at = walk.at + 1 < per_head ? walk.at + 1 : 0;
    if constexpr (Tile::kDrops) {
      walk.head += walk.at == 0 ? 1 : 0;
    }
  }

  __device__ __forceinline__ void score(float (&scores)[kN8][4], const Walk& walk, int step) const {
    columns.wait(step);
    multiply_along(scores, walk.left, walk.parts, columns.buffer(step));
  }

  // The warp's 16 rows of a tile, as left operands.
  static __device__ __forceinline__ void load_parts(RowParts& to, unsigned int tile_address) {
    const int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int k = 0; k < Tile::kHeadSize / 16; ++k) {
      load_tiles(to[k], tile_address + Rows::offset(warp_row() + lane % 16, k * 16 + lane / 16 * 8));
    }
  }

  // to = 64 rows * columns^T. The rows are `parts` where kRowsKept, and otherwise at `left`.
  static __device__ __forceinline__ void multiply_along(float (&to)[kN8][4], unsigned int left,
                                                        const RowParts& parts, unsigned int right) {
    hold_wgmma_result(to);
    open_wgmma_group();
    if constexpr (kRowsKept) {
      wgmma<T, true, 0>(to, parts[0], wgmma_operand(right, 16));
#pragma unroll
      for (int k = 16; k < Tile::kHeadSize; k += 16) {
        wgmma<T, true>(to, parts[k / 16],
                       wgmma_operand(right + k / 64 * Columns::kPanelBytes + k % 64 * 2, 16));
      }
    } else {
      wgmma<T, true, true, 0>(to, wgmma_operand(left, 16), wgmma_operand(right, 16));
#pragma unroll
      for (int k = 16; k < Tile::kHeadSize; k += 16) {
        wgmma<T, true, true>(to, wgmma_operand(left + k / 64 * Rows::kPanelBytes + k % 64 * 2, 16),
                             wgmma_operand(right + k / 64 * Columns::kPanelBytes + k % 64 * 2, 16));
      }
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
                 "r"(rows)
                 : "memory");
  }
};
