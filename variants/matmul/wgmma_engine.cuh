// ENGINE 1: each warpgroup multiplies its part of the tiles by wgmma, straight from shared memory.
#pragma once

#include "wgmma.cuh"

template <typename S>
struct WgmmaEngine {
  static constexpr int kGroupsM = S::kWarpsM / 4;
  static constexpr int kGroupM = S::kBlockM / S::kWarpsM * 4, kGroupN = S::kBlockN / S::kWarpsN;
  static constexpr int kM64 = kGroupM / 64, kN8 = kGroupN / 8;
  static_assert(S::kWarpsM % 4 == 0 && kGroupM % 64 == 0 && kGroupN % 64 == 0, "whole instructions");
  static_assert(S::kBlockK % 64 == 0 && S::kStages >= 3,
                "panels of 128 bytes; one stage is read, one filled");

  float sums[kM64][kN8][4];

  // As in MmaEngine.
  static constexpr int kRows = kM64 * 2, kColumns = kN8 * 2, kRun = 2;
  static __device__ __forceinline__ int row(int i) {
    return group_m() + i / 2 * 64 + int(threadIdx.x) / 32 % 4 * 16 + i % 2 * 8 + int(threadIdx.x) % 32 / 4;
  }
  static __device__ __forceinline__ int column(int j) {
    return group_n() + j / 2 * 8 + int(threadIdx.x) % 4 * 2 + j % 2;
  }
  __device__ __forceinline__ float sum(int i, int j) const { return sums[i / 2][j / 2][i % 2 * 2 + j % 2]; }

  // While the products of a step run, copies go to the buffer of the step before the last one: all warpgroups
  // were past it when they met at the barrier. They start while the products of the step before run.
  __device__ __forceinline__ void run(const S& stages) {
#pragma unroll
    for (int i = 0; i < kM64 * kN8 * 4; ++i) {
      sums[i / 4 / kN8][i / 4 % kN8][i % 4] = 0.0f;
    }
    hold();
    // The same in all lanes, as the compiler sees: descriptors then stay in uniform registers.
    const int group = __shfl_sync(0xffffffffu, int(threadIdx.x) / 128, 0);
    const int row = group % kGroupsM * kGroupM, column = group / kGroupsM * kGroupN;
#pragma unroll 1
    for (int step = 0; step < S::kStages - 2; ++step) {
      stages.start(step);
    }
    int step = 0;
    if constexpr (S::kFed) {
      step = run_rounds(stages, row, column);
    }
#pragma unroll 1
    for (; step < stages.steps; ++step) {
      wait_for_copies<S::kStages - 3>();
      publish_to_wgmma();
      __syncthreads();
      stages.start(step + S::kStages - 2);
      open_wgmma_group();
      multiply(stages.left(step), stages.right(step), row, column);
      close_wgmma_group();
      wait_for_wgmma<1>();
    }
    wait_for_wgmma<0>();
    hold();
  }

 private:
  // As many rounds of kStages steps as there are whose copies are of whole steps; returns where they end. All
  // offsets within a round are constants.
  __device__ __forceinline__ int run_rounds(const S& stages, int row, int column) {
    constexpr int kAhead = S::kStages - 2;
    typename S::LeftFeed left = stages.left_feed(kAhead);
    typename S::RightFeed right = stages.right_feed(kAhead);
    const int end = stages.whole_steps() - kAhead - (S::kStages - 1);
    int step = 0;
#pragma unroll 1
    for (; step < end; step += S::kStages) {
      run_round<0>(stages, left, right, row, column);
      left.template move_on<S::kStages>();
      right.template move_on<S::kStages>();
    }
    return step;
  }

  template <int STEP>
  __device__ __forceinline__ void run_round(const S& stages, typename S::LeftFeed& left,
                                            typename S::RightFeed& right, int row, int column) {
    constexpr int kFilled = (STEP + S::kStages - 2) % S::kStages;
    wait_for_copies<S::kStages - 3>();
    publish_to_wgmma();
    __syncthreads();
    left.template start<STEP>(stages.left(kFilled));
    right.template start<STEP>(stages.right(kFilled));
    close_copy_group();
    open_wgmma_group();
    multiply(stages.left(STEP), stages.right(STEP), row, column);
    close_wgmma_group();
    wait_for_wgmma<1>();
    if constexpr (STEP + 1 < S::kStages) {
      run_round<STEP + 1>(stages, left, right, row, column);
    }
  }

  static __device__ __forceinline__ int group() { return int(threadIdx.x) / 128; }
  static __device__ __forceinline__ int group_m() { return group() % kGroupsM * kGroupM; }
  static __device__ __forceinline__ int group_n() { return group() / kGroupsM * kGroupN; }

  __device__ __forceinline__ void hold() {
#pragma unroll
    for (int i = 0; i < kM64; ++i) {
      hold_wgmma_result(sums[i]);
    }
  }

  // The operand that begins at the row or column `first` and at k. Within the eight rows of a swizzle wgmma
  // permutes the chunks by their address, so that k moves on by plain bytes.
  template <bool ALONG_K, typename Tile>
  static __device__ __forceinline__ unsigned long long operand(unsigned int tile, int first, int k) {
    if constexpr (ALONG_K) {
      return wgmma_operand(tile + k / 64 * Tile::kPanelBytes + first * 128 + k % 64 * 2, 16);
    } else {
      return wgmma_operand(tile + first / 64 * Tile::kPanelBytes + k * 128, Tile::kPanelBytes);
    }
  }

  // The warpgroup's part of the tiles begins at this row of the left and this column of the right one.
  __device__ __forceinline__ void multiply(unsigned int left, unsigned int right, int row, int column) {
#pragma unroll
    for (int k = 0; k < S::kBlockK; k += 16) {
#pragma unroll
      for (int i = 0; i < kM64; ++i) {
        wgmma<typename S::T, S::kLeftAlongK, S::kRightAlongK>(
            sums[i], operand<S::kLeftAlongK, typename S::Left>(left, row + i * 64, k),
            operand<S::kRightAlongK, typename S::Right>(right, column, k));
      }
    }
  }
};
