// ENGINE 0: each warp multiplies its part of the tiles by mma.sync, fed by ldmatrix.
#pragma once

#include "mma.cuh"

template <typename S>
struct MmaEngine {
  static constexpr int kWarpM = S::kBlockM / S::kWarpsM, kWarpN = S::kBlockN / S::kWarpsN;
  static constexpr int kM16 = kWarpM / 16, kN8 = kWarpN / 8, kK16 = S::kBlockK / 16;
  static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0 && kK16 % 2 == 0, "whole instructions, in pairs");

  float sums[kM16][kN8][4];

  // A thread's part of the result: kRows x kColumns elements, of which kRun adjacent columns lie side by side.
  static constexpr int kRows = kM16 * 2, kColumns = kN8 * 2, kRun = 2;
  static __device__ __forceinline__ int row(int i) { return warp_m() + i / 2 * 16 + i % 2 * 8 + lane() / 4; }
  static __device__ __forceinline__ int column(int j) {
    return warp_n() + j / 2 * 8 + lane() % 4 * 2 + j % 2;
  }
  __device__ __forceinline__ float sum(int i, int j) const { return sums[i / 2][j / 2][i % 2 * 2 + j % 2]; }

  struct Nothing {
    __device__ __forceinline__ void operator()(MmaEngine&, int) const {}
  };

  // Operands are loaded one k16 ahead of the products; the last k16 of a step loads the first of the next one.
  // after(engine, step) is called when a step's products are added up.
  template <typename After = Nothing>
  __device__ __forceinline__ void run(const S& stages, After after = {}) {
#pragma unroll
    for (int i = 0; i < kM16 * kN8 * 4; ++i) {
      sums[i / 4 / kN8][i / 4 % kN8][i % 4] = 0.0f;
    }
#pragma unroll 1
    for (int step = 0; step < S::kStages - 1; ++step) {
      stages.start(step);
    }
    wait_for_copies<S::kStages - 2>();
    __syncthreads();
    const unsigned int left = left_address<S::kLeftAlongK, typename S::Left>(0, warp_m());
    const unsigned int right = right_address<S::kRightAlongK, typename S::Right>(0, warp_n());
    Operands operands[2];
    operands[0].load(stages.left(0) + left, stages.right(0) + right, 0);
#pragma unroll 1
    for (int step = 0; step < stages.steps; ++step) {
#pragma unroll
      for (int k = 0; k < kK16; ++k) {
        if (k == kK16 - 1) {
          wait_for_copies<S::kStages - 2>();
          __syncthreads();
        }
        const int loaded = k == kK16 - 1 ? step + 1 : step;
        operands[(k + 1) % 2].load(stages.left(loaded) + left, stages.right(loaded) + right,
                                   (k + 1) % kK16 * 16);
        if (k == 0) {
          stages.start(step + S::kStages - 1);
        }
        multiply(operands[k % 2]);
      }
      after(*this, step);
    }
  }

 private:
  struct Operands {
    unsigned int left[kM16][4], right[kN8 / 2][4];

    // At k of a step whose tiles lie for this thread at these addresses.
    __device__ __forceinline__ void load(unsigned int left_at, unsigned int right_at, int k) {
#pragma unroll
      for (int i = 0; i < kM16; ++i) {
        load_left<S::kLeftAlongK, typename S::Left>(left[i], left_at, i * 16, k);
      }
#pragma unroll
      for (int j = 0; j < kN8 / 2; ++j) {
        load_right_pair<S::kRightAlongK, typename S::Right>(right[j], right_at, j * 16, k);
      }
    }
  };

  static __device__ __forceinline__ int lane() { return int(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp_m() { return int(threadIdx.x) / 32 % S::kWarpsM * kWarpM; }
  static __device__ __forceinline__ int warp_n() { return int(threadIdx.x) / 32 / S::kWarpsM * kWarpN; }

  // Forth and back along the columns, so that an operand is used again right after its use.
  __device__ __forceinline__ void multiply(const Operands& operands) {
#pragma unroll
    for (int i = 0; i < kM16; ++i) {
#pragma unroll
      for (int j = 0; j < kN8; ++j) {
        const int at = i % 2 == 0 ? j : kN8 - 1 - j;
        mma<typename S::T>(sums[i][at], operands.left[i], operands.right[at / 2][at % 2 * 2],
                           operands.right[at / 2][at % 2 * 2 + 1]);
      }
    }
  }
};
