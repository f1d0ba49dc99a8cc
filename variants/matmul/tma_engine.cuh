// ENGINE 3 (sm_90a): a thread of the first warpgroup loads the tiles of A and B by TMA, the two other warpgroups
// multiply them by wgmma and store C by TMA while the next tiles are loaded. Blocks stay: a cluster goes from tile to
// tile of C, and its stages of shared memory with it.
//
// PING_PONG  each of the two warpgroups has a tile of its own, in turn, so that one stores while the other
//            multiplies; else each has the half of a tile's rows
// CLUSTER    2: two blocks compute tiles next to each other. Each loads the half of the operand that they share
//            to both: SHARE_A, where the tiles lie side by side, else B, where they lie one below the other
#pragma once

#include "cluster.cuh"
#include "swizzled_tile.cuh"
#include "tensor_memory.cuh"
#include "warp_roles.cuh"
#include "wgmma.cuh"

// A tile of C: its first row and column, the row where its matrix of B begins as B lies in memory, and the row before
// which C ends for it.
struct TmaTile {
  int m, n, right_row, end;
};

template <typename Element, typename Result_, int BLOCK_M, int BLOCK_N, int STAGES, int CLUSTER, bool SHARE_A,
          bool PING_PONG, bool LEFT_ALONG_K, bool RIGHT_ALONG_K>
struct TmaEngine {
  using T = Element;
  using Result = Result_;
  static constexpr int kStages = STAGES, kConsumers = 2;
  static constexpr int kBlockK = 128 / int(sizeof(T)), kInstructionK = 32 / int(sizeof(T));
  static constexpr int kPartsOfA = SHARE_A ? CLUSTER : 1, kPartsOfB = SHARE_A ? 1 : CLUSTER;
  static constexpr int kRows = PING_PONG ? BLOCK_M : BLOCK_M / kConsumers;  // of a warpgroup
  static constexpr int kM64 = kRows / 64, kN8 = BLOCK_N / 8;
  static_assert(kRows % 64 == 0 && BLOCK_N % 64 == 0, "whole instructions, whole pieces of C");
  using Left = SwizzledTile<T, LEFT_ALONG_K ? BLOCK_M : kBlockK, LEFT_ALONG_K ? kBlockK : BLOCK_M>;
  using Right = SwizzledTile<T, RIGHT_ALONG_K ? BLOCK_N : kBlockK, RIGHT_ALONG_K ? kBlockK : BLOCK_N>;
  static constexpr int kStageBytes = Left::kBytes + Right::kBytes;
  // C goes through shared memory in pieces of 64 x 64 elements, of which each warpgroup has two.
  static constexpr int kPieces = 2, kPieceBytes = 64 * 64 * int(sizeof(Result));
  using Sums = float[kM64][kN8][4];

  // Addresses in shared memory: stages, pieces, and for each stage a barrier of the copies to it (full) and one of the
  // warpgroups that have read it (empty).
  struct Shared {
    unsigned int stages;
    __device__ __forceinline__ unsigned int left(int stage) const { return stages + stage * kStageBytes; }
    __device__ __forceinline__ unsigned int right(int stage) const { return left(stage) + Left::kBytes; }
    __device__ __forceinline__ unsigned int piece(int number) const {
      return stages + STAGES * kStageBytes + number * kPieceBytes;
    }
    __device__ __forceinline__ unsigned int full(int stage) const {
      return piece(kConsumers * kPieces) + stage * 8;
    }
    __device__ __forceinline__ unsigned int empty(int stage) const { return full(stage) + STAGES * 8; }
  };

  // The next stage, and the parity of the phase of its barrier that is waited for.
  struct Turn {
    int stage, parity;
    __device__ __forceinline__ void advance(int steps) {
      parity ^= (stage + steps) / STAGES & 1;
      stage = (stage + steps) % STAGES;
    }
    __device__ __forceinline__ void next() {
      if (++stage == STAGES) {
        stage = 0;
        parity ^= 1;
      }
    }
  };

  // By all threads, at first: `dynamic` is the block's shared memory.
  static __device__ __forceinline__ Shared initialize(const unsigned char* dynamic) {
    const Shared shared = {(static_cast<unsigned int>(__cvta_generic_to_shared(dynamic)) + 1023) / 1024 *
                           1024};
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < STAGES; ++stage) {
        initialize_barrier(shared.full(stage), 1);
        initialize_barrier(shared.empty(stage), (PING_PONG ? 1 : kConsumers) * CLUSTER);
      }
      publish_barriers();
    }
    meet_blocks();
    return shared;
  }

  // All tiles, each of `steps` steps along k. tiles.find(item, rank, tile) says which one block `rank` of a cluster
  // computes as the item-th, if there is one; items ascend. sum(shared, turn, sums, tile, own) adds up the products of a tile for
  // consumer `own` (as Sum does), finish(values, row, column) makes of the sums of (row, column + {0, 1}) and
  // (row + 8, column + {0, 1}) what is stored.
  template <typename Tiles, typename Sum, typename Finish>
  static __device__ __forceinline__ void run(const Shared& shared, const TensorMap& a, const TensorMap& b,
                                             const TensorMap& c, const Tiles& tiles, int steps, Sum sum,
                                             Finish finish) {
    // The same in all lanes, as the compiler sees: descriptors then stay in uniform registers.
    const int group = __shfl_sync(0xffffffffu, int(threadIdx.x) / 128, 0);
    if (group == 0) {
      give_up_registers<40>();
      if (threadIdx.x == 0) {
        load_all(shared, a, b, tiles, steps);
      }
    } else {
      take_registers<232>();
      multiply_all(shared, c, tiles, steps, sum, finish, group - 1);
    }
    if constexpr (CLUSTER > 1) {
      __syncthreads();
      meet_cluster();  // a block's barriers and stages are there until the other one is done with them
    }
  }

  // The plain sums of a tile's products.
  struct Sum {
    int steps;
    __device__ __forceinline__ void operator()(const Shared& shared, Turn& turn, Sums& sums, const TmaTile&,
                                               int own) const {
      add(shared, turn, sums, steps, own);
    }
  };

  // One stage's products run while those of the next one are issued.
  static __device__ __forceinline__ void add(const Shared& shared, Turn& turn, Sums& sums, int steps,
                                             int own) {
    clear(sums);
    int before = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait_for_phase(shared.full(turn.stage), turn.parity);
      open_wgmma_group();
      multiply<1>(shared, turn.stage, sums, own);
      close_wgmma_group();
      wait_for_wgmma<1>();
      if (step > 0) {
        release(shared, before);
      }
      before = turn.stage;
      turn.next();
    }
    if constexpr (PING_PONG) {
      announce(kTurns + (own ^ 1), 256);
    }
    wait_for_wgmma<0>();
    release(shared, before);
    hold(sums);
  }

  // The products of a stage, added or, FIRST_ADDS 0, from zero on.
  template <int FIRST_ADDS>
  static __device__ __forceinline__ void multiply(const Shared& shared, int stage, Sums& sums, int own) {
    const int row = PING_PONG ? 0 : own * kRows;
#pragma unroll
    for (int k = 0; k < kBlockK; k += kInstructionK) {
#pragma unroll
      for (int i = 0; i < kM64; ++i) {
        const unsigned long long left = operand<LEFT_ALONG_K, Left>(shared.left(stage), row + i * 64, k);
        const unsigned long long right = operand<RIGHT_ALONG_K, Right>(shared.right(stage), 0, k);
        if (k == 0) {
          wgmma<T, LEFT_ALONG_K, RIGHT_ALONG_K, FIRST_ADDS>(sums[i], left, right);
        } else {
          wgmma<T, LEFT_ALONG_K, RIGHT_ALONG_K>(sums[i], left, right);
        }
      }
    }
  }

  static __device__ __forceinline__ void clear(Sums& sums) {
#pragma unroll
    for (int i = 0; i < kM64 * kN8 * 4; ++i) {
      sums[i / 4 / kN8][i / 4 % kN8][i % 4] = 0.0f;
    }
    hold(sums);
  }
  static __device__ __forceinline__ void hold(Sums& sums) {
#pragma unroll
    for (int i = 0; i < kM64; ++i) {
      hold_wgmma_result(sums[i]);
    }
  }

  // A warpgroup has read a stage: all blocks that load to it may do so again.
  static __device__ __forceinline__ void release(const Shared& shared, int stage) {
    const int thread = int(threadIdx.x) % 128;
    if constexpr (CLUSTER > 1) {
      if (thread < CLUSTER) {
        arrive_at_block(shared.empty(stage), thread);
      }
    } else if (thread == 0) {
      arrive(shared.empty(stage));
    }
  }

 private:
  static constexpr int kMeetings = 1, kTurns = 3;  // the first of the named barriers of the warpgroups

  static __device__ __forceinline__ void meet_blocks() {
    if constexpr (CLUSTER > 1) {
      meet_cluster();
    } else {
      __syncthreads();
    }
  }
  static __device__ __forceinline__ int first_item() { return int(blockIdx.x) / CLUSTER; }
  static __device__ __forceinline__ int clusters() { return int(gridDim.x) / CLUSTER; }
  static __device__ __forceinline__ int rank() { return CLUSTER > 1 ? int(block_of_cluster()) : 0; }

  // The operand that begins at the row or column `first` and at k.
  template <bool ALONG_K, typename Tile>
  static __device__ __forceinline__ unsigned long long operand(unsigned int tile, int first, int k) {
    if constexpr (ALONG_K) {
      return wgmma_operand(tile + first * 128 + k * int(sizeof(T)), 16);
    } else {
      return wgmma_operand(tile + first / 64 * Tile::kPanelBytes + k * 128, Tile::kPanelBytes);
    }
  }

  // The boxes of an operand's tile, of which this block loads one of PARTS parts: rows that run along k are one box,
  // else each panel of 64 columns is one.
  template <bool ALONG_K, int SIZE, int PARTS>
  static __device__ __forceinline__ void load(const TensorMap& map, unsigned int to, int first, int k,
                                              int below, unsigned int barrier) {
    constexpr int kOwn = SIZE / PARTS;
    static_assert(ALONG_K || kOwn % 64 == 0, "whole panels");
    const int from = PARTS > 1 ? rank() * kOwn : 0;
    if constexpr (ALONG_K) {
      load_box<PARTS>(to + from * 128, map, k, below + first + from, barrier);
    } else {
#pragma unroll
      for (int column = 0; column < kOwn; column += 64) {
        load_box<PARTS>(to + (from + column) / 64 * kBlockK * 128, map, first + from + column, below + k,
                        barrier);
      }
    }
  }

  template <typename Tiles>
  static __device__ __forceinline__ void load_all(const Shared& shared, const TensorMap& a,
                                                  const TensorMap& b, Tiles tiles, int steps) {
    Turn turn = {0, 1};
    TmaTile tile;
    for (int item = first_item(); tiles.find(item, rank(), tile); item += clusters()) {
      for (int step = 0; step < steps; ++step) {
        wait_for_phase(shared.empty(turn.stage), turn.parity);
        const unsigned int barrier = shared.full(turn.stage);
        const int k = step * kBlockK;
        expect_bytes(barrier, kStageBytes);
        load<LEFT_ALONG_K, BLOCK_M, kPartsOfA>(a, shared.left(turn.stage), tile.m, k, 0, barrier);
        load<RIGHT_ALONG_K, BLOCK_N, kPartsOfB>(b, shared.right(turn.stage), tile.n, k, tile.right_row,
                                                barrier);
        turn.next();
      }
    }
  }

  // With PING_PONG a warpgroup begins when the other one has issued all products of the tile before. The phases it
  // waits for are then the barriers' current ones; a parity does not tell apart phases further away.
  template <typename Tiles, typename Sum, typename Finish>
  static __device__ __forceinline__ void multiply_all(const Shared& shared, const TensorMap& c, Tiles tiles,
                                                      int steps, Sum sum, Finish finish, int own) {
    constexpr int kApart = PING_PONG ? kConsumers : 1;
    const int first = PING_PONG ? own : 0;
    Turn turn = {0, 0};
    turn.advance(first * steps);
    if (PING_PONG && own == 1) {
      announce(kTurns, 256);
    }
    int piece = 0;
    TmaTile tile;
    for (int item = first_item() + first * clusters(); tiles.find(item, rank(), tile);
         item += kApart * clusters()) {
      Sums sums;
      if constexpr (PING_PONG) {
        meet(kTurns + own, 256);
      }
      sum(shared, turn, sums, tile, own);
      turn.advance((kApart - 1) * steps);
      store(shared, c, tiles, tile, sums, finish, own, piece);
    }
    if (threadIdx.x % 128 == 0) {
      wait_for_stores();
    }
  }

  // This warpgroup's rows of a tile, piece by piece; pieces that reach beyond `end` element by element where the rows
  // that follow are another tile's.
  template <typename Tiles, typename Finish>
  static __device__ __forceinline__ void store(const Shared& shared, const TensorMap& c, const Tiles& tiles,
                                               const TmaTile& tile, Sums& sums, Finish finish, int own,
                                               int& piece) {
    const int thread = int(threadIdx.x) % 128, warp = thread / 32, lane = thread % 32;
#pragma unroll
    for (int i = 0; i < kM64; ++i) {
      const int top = tile.m + (PING_PONG ? 0 : own * kRows) + i * 64, row = top + warp * 16 + lane / 4;
#pragma unroll
      for (int j = 0; j < kN8; j += 8) {
        const int left = tile.n + j * 8;
        if (top >= tile.end || left >= tiles.N) {
          continue;
        }
#pragma unroll
        for (int h = 0; h < 8; ++h) {
          finish(sums[i][j + h], row, left + h * 8 + lane % 4 * 2);
        }
        if constexpr (Tiles::kRagged) {
          if (top + 64 > tile.end) {
            store_elements(tiles, tile, sums[i], j, row, left + lane % 4 * 2);
            continue;
          }
        }
        const unsigned int to = shared.piece(own * kPieces + piece);
        piece ^= 1;
        if (thread == 0) {
          wait_for_store_reads<kPieces - 1>();
        }
        meet(kMeetings + own, 128);
        keep_piece(to, sums[i], j, warp * 16 + lane % 16, lane / 16);
        publish_to_wgmma();
        meet(kMeetings + own, 128);
        if (thread == 0) {
          store_box(c, to, left, top);
        }
      }
    }
  }

  // `row` and `chunk` are those of the 16 bytes whose address this lane gives.
  static __device__ __forceinline__ void keep_piece(unsigned int to, const float (&sums)[kN8][4], int j,
                                                    int row, int chunk) {
#pragma unroll
    for (int h = 0; h < 8; h += 2) {
      const float(&x)[4] = sums[j + h];
      const float(&y)[4] = sums[j + h + 1];
      store_tiles(to + row * 128 + ((h + chunk) ^ (row & 7)) * 16,
                  {rounded_pair<Result>(x[0], x[1]), rounded_pair<Result>(x[2], x[3]),
                   rounded_pair<Result>(y[0], y[1]), rounded_pair<Result>(y[2], y[3])});
    }
  }

  template <typename Tiles>
  static __device__ __forceinline__ void store_elements(const Tiles& tiles, const TmaTile& tile,
                                                        const float (&sums)[kN8][4], int j, int row,
                                                        int column) {
#pragma unroll
    for (int h = 0; h < 8; ++h) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = row + half * 8;
        if (at < tile.end && column + h * 8 < tiles.N) {
          *reinterpret_cast<unsigned int*>(tiles.c + static_cast<long long>(at) * tiles.N + column + h * 8) =
              rounded_pair<Result>(sums[j + h][half * 2], sums[j + h][half * 2 + 1]);
        }
      }
    }
  }
};
