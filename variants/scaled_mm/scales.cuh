// Products of e4m3 whose sums are scaled, by both engines of scaled_mm.cu.
#pragma once

#include "as_it_is.cuh"
#include "e4m3_types.cuh"
#include "epilogue.cuh"
#include "mma_engine.cuh"
#include "stages.cuh"
#include "tma_engine.cuh"

constexpr int kScaledDepth = 128;  // values of k with one scale, and of a step of both engines

// Two elements, each in the upper half of 16 bits, as two f16. Exact, and NaN stays NaN.
__device__ __forceinline__ unsigned int to_halves(unsigned int pair) {
  const unsigned int magnitudes = pair & 0x7f007f00u;
  // Exponent and fraction stand one bit lower than in f16: a value 2^-8 times as large.
  const unsigned int bits = (pair & 0x80008000u) | magnitudes >> 1;
  unsigned int scaled;
  asm("mul.f16x2 %0, %1, %2;" : "=r"(scaled) : "r"(bits), "r"(0x5c005c00u));  // 256
  return scaled | (__vcmpeq2(magnitudes, 0x7f007f00u) & 0x7e007e00u);
}

// The registers that hold 16 values of k of 16-bit elements hold 32 of e4m3, in the order that mma.sync wants.
template <>
__device__ __forceinline__ void mma<E4m3Pair>(float (&c)[4], const unsigned int (&a)[4], unsigned int b0,
                                              unsigned int b1) {
#if __CUDA_ARCH__ >= 890
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  // Each thread's first two values of four, then its last two: the order of k is the same on both sides.
  unsigned int left[2][4], right[2][2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    left[0][i] = to_halves(__byte_perm(a[i], 0, 0x1404));
    left[1][i] = to_halves(__byte_perm(a[i], 0, 0x3424));
  }
  const unsigned int b[2] = {b0, b1};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    right[0][i] = to_halves(__byte_perm(b[i], 0, 0x1404));
    right[1][i] = to_halves(__byte_perm(b[i], 0, 0x3424));
  }
  mma<__half>(c, left[0], right[0][0], right[0][1]);
  mma<__half>(c, left[1], right[1][0], right[1][1]);
#endif
}

// SCALES as in scaled_mm.cu.
template <int SCALES>
constexpr bool kOneScale = SCALES % 3 == 0;
template <int SCALES>
constexpr bool kScaleOfBlocks = SCALES == 2;
template <int SCALES>
constexpr bool kAddsBlocks = SCALES >= 2;

template <int SCALES>
struct Scales {
  const float* a;
  const float* b;
  int M, N, K;

  // Of the element (row, column) of the finished sums.
  __device__ __forceinline__ float of_sum(int row, int column) const {
    if constexpr (kOneScale<SCALES>) {
      return a[0] * b[0];
    } else if constexpr (kScaleOfBlocks<SCALES>) {
      return 1.0f;
    } else {
      return row < M && column < N ? a[row] * b[column] : 0.0f;
    }
  }
  // By block.
  __device__ __forceinline__ float of_row(int row, int step) const {
    if constexpr (!kScaleOfBlocks<SCALES>) {
      return 1.0f;
    }
    return row < M ? a[static_cast<long long>(step) * M + row] : 0.0f;
  }
  __device__ __forceinline__ float of_columns(int column, int step) const {
    if constexpr (!kScaleOfBlocks<SCALES>) {
      return 1.0f;
    }
    return column < N
               ? b[static_cast<long long>(column / 128) * ((K + kScaledDepth - 1) / kScaledDepth) + step]
               : 0.0f;
  }
};

// --- ENGINE 0 ---

// Adds the sums of a step, times their scales, to `total`.
template <typename Engine, int SCALES>
struct AddScaled {
  Scales<SCALES> scales;
  int m, n;
  float (&total)[Engine::kRows][Engine::kColumns];

  __device__ __forceinline__ void operator()(Engine& engine, int step) const {
#pragma unroll
    for (int i = 0; i < Engine::kRows; ++i) {
      const float factor = scales.of_row(m + Engine::row(i), step) * scales.of_columns(n, step);
#pragma unroll
      for (int j = 0; j < Engine::kColumns; ++j) {
        float& sum = engine.sums[i / 2][j / 2][i % 2 * 2 + j % 2];
        total[i][j] = fmaf(sum, factor, total[i][j]);
        sum = 0.0f;
      }
    }
  }
};

// The tile of C that begins at (m, n), of rows before `end`. B is N x K.
template <typename T, int BLOCK_M, int BLOCK_N, int STAGES, int SCALES>
__device__ __forceinline__ void multiply_scaled(const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b,
                                                const Scales<SCALES>& scales, T* c, int m, int n, int end) {
  using S = Stages<E4m3Pair, BLOCK_M, BLOCK_N, kScaledDepth / 2, 2, 4, STAGES, 8, false, true>;
  using Engine = MmaEngine<S>;
  extern __shared__ __align__(1024) unsigned char dynamic[];
  unsigned char* shared = dynamic + (0u - shared_address(dynamic)) % 1024;
  const int N = scales.N, K = scales.K;
  const S stages = {Matrix<E4m3Pair>{reinterpret_cast<const E4m3Pair*>(a), end, K / 2},
                    Matrix<E4m3Pair>{reinterpret_cast<const E4m3Pair*>(b), N, K / 2},
                    m,
                    n,
                    0,
                    (K + kScaledDepth - 1) / kScaledDepth,
                    shared_address(shared)};
  Engine engine;
  float total[Engine::kRows][Engine::kColumns] = {};
  if constexpr (kAddsBlocks<SCALES>) {
    engine.run(stages, AddScaled<Engine, SCALES>{scales, m, n, total});
  } else {
    engine.run(stages);
  }
#pragma unroll
  for (int i = 0; i < Engine::kRows; ++i) {
#pragma unroll
    for (int j = 0; j < Engine::kColumns; ++j) {
      float& sum = engine.sums[i / 2][j / 2][i % 2 * 2 + j % 2];
      sum = (kAddsBlocks<SCALES> ? total[i][j] : sum) *
            scales.of_sum(m + Engine::row(i), n + Engine::column(j));
    }
  }
  __syncthreads();  // all have read the last stage
  T* finished = reinterpret_cast<T*>(shared);
  finish<0, kNone, BLOCK_N>(engine, static_cast<const T*>(nullptr), finished, n, N);
  __syncthreads();
  store_finished<BLOCK_M, BLOCK_N, S::kThreads>(finished, c, m, n, end, N);
}

// --- ENGINE 1 ---

// The sums of a tile by blocks: while one buffer's are scaled and added, the products of the next step go to the
// other one.
// BY_LANE  each lane of a warp loads the scale of its own column of B. They have the same one, and if the compiler sees
//          that, it waits for the load at once to put it into a uniform register.
template <typename E, int SCALES, bool BY_LANE>
struct BlockSums {
  static_assert(E::kN8 == 16 && E::kM64 == 1, "one scale of B, and room for three sums");
  using Sums = typename E::Sums;
  struct Factors {
    float rows[E::kM64 * 2], columns;
  };

  Scales<SCALES> scales;
  int steps;

  __device__ __forceinline__ void operator()(const typename E::Shared& shared, typename E::Turn& turn,
                                             Sums& sums, const TmaTile& tile, int own) const {
    E::clear(sums);
    const int thread = int(threadIdx.x) % 128;
    const int row = tile.m + own * E::kRows + thread / 32 * 16 + thread % 32 / 4;
    const int column = tile.n + (BY_LANE ? thread % 4 * 2 : 0);
    Sums even, odd;
    Factors of_even, of_odd;
    int done = turn.stage, step = 0;
    start(shared, turn, even, of_even, row, column, own, 0);
#pragma unroll 1
    for (; step + 2 < steps; step += 2) {
      start(shared, turn, odd, of_odd, row, column, own, step + 1);
      take<1>(shared, done, sums, even, of_even);
      start(shared, turn, even, of_even, row, column, own, step + 2);
      take<1>(shared, done, sums, odd, of_odd);
    }
    if (step + 1 < steps) {
      start(shared, turn, odd, of_odd, row, column, own, step + 1);
      take<1>(shared, done, sums, even, of_even);
      take<0>(shared, done, sums, odd, of_odd);
    } else {
      take<0>(shared, done, sums, even, of_even);
    }
  }

 private:
  __device__ __forceinline__ void start(const typename E::Shared& shared, typename E::Turn& turn, Sums& part,
                                        Factors& factors, int row, int column, int own, int step) const {
    factors.columns = scales.of_columns(column, step);
#pragma unroll
    for (int i = 0; i < E::kM64 * 2; ++i) {
      factors.rows[i] = scales.of_row(row + i / 2 * 64 + i % 2 * 8, step);
    }
    wait_for_phase(shared.full(turn.stage), turn.parity);
    E::hold(part);
    open_wgmma_group();
    E::template multiply<0>(shared, turn.stage, part, own);
    close_wgmma_group();
    turn.next();
  }

  // The sums that PENDING later groups follow.
  template <int PENDING>
  static __device__ __forceinline__ void take(const typename E::Shared& shared, int& done, Sums& sums,
                                              Sums& part, const Factors& factors) {
    wait_for_wgmma<PENDING>();
    E::hold(part);
    E::release(shared, done);
    done = done + 1 == E::kStages ? 0 : done + 1;
#pragma unroll
    for (int i = 0; i < E::kM64; ++i) {
      const float factor[2] = {factors.rows[i * 2] * factors.columns,
                               factors.rows[i * 2 + 1] * factors.columns};
#pragma unroll
      for (int j = 0; j < E::kN8 * 4; ++j) {
        sums[i][j / 4][j % 4] = fmaf(part[i][j / 4][j % 4], factor[j % 4 / 2], sums[i][j / 4][j % 4]);
      }
    }
  }
};

// The scales of a warpgroup's finished sums. They are loaded before the products and stay in registers: those of rows
// in the threads that have the rows, those of columns one by one along a warp.
template <typename E, int SCALES>
struct HeldScales {
  static constexpr int kColumns = kOneScale<SCALES> ? 1 : E::kN8 / 4;
  float rows[E::kM64 * 2], columns[kColumns];

  __device__ __forceinline__ HeldScales(const Scales<SCALES>& scales, const TmaTile& tile, int own) {
    const int thread = int(threadIdx.x) % 128, lane = thread % 32;
    const int row = tile.m + own * E::kRows + thread / 32 * 16 + lane / 4, column = tile.n + lane;
#pragma unroll
    for (int i = 0; i < E::kM64 * 2; ++i) {
      const int at = row + i / 2 * 64 + i % 2 * 8;
      rows[i] = kOneScale<SCALES> ? scales.a[0] : at < scales.M ? scales.a[at] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      const int at = column + i * 32;
      columns[i] = kOneScale<SCALES> ? scales.b[0] : at < scales.N ? scales.b[at] : 0.0f;
    }
  }

  __device__ __forceinline__ void apply(typename E::Sums& sums) const {
#pragma unroll
    for (int j = 0; j < E::kN8; ++j) {
      const float of_columns[2] = {of_column(j, 0), of_column(j, 1)};
#pragma unroll
      for (int i = 0; i < E::kM64 * 4; ++i) {
        sums[i / 4][j][i % 4] *= rows[i / 2] * of_columns[i % 2];
      }
    }
  }

 private:
  __device__ __forceinline__ float of_column(int j, int next) const {
    if constexpr (kOneScale<SCALES>) {
      return columns[0];
    }
    return __shfl_sync(0xffffffffu, columns[j / 4], j % 4 * 8 + int(threadIdx.x) % 4 * 2 + next);
  }
};

// The sums of a tile's products, times their scales. BY_LANE as of BlockSums.
template <typename E, int SCALES, bool BY_LANE>
struct ScaledSums {
  Scales<SCALES> scales;
  int steps;

  __device__ __forceinline__ void operator()(const typename E::Shared& shared, typename E::Turn& turn,
                                             typename E::Sums& sums, const TmaTile& tile, int own) const {
    if constexpr (kScaleOfBlocks<SCALES>) {
      BlockSums<E, SCALES, BY_LANE>{scales, steps}(shared, turn, sums, tile, own);
    } else {
      const HeldScales<E, SCALES> held(scales, tile, own);
      if constexpr (kAddsBlocks<SCALES>) {
        BlockSums<E, SCALES, BY_LANE>{scales, steps}(shared, turn, sums, tile, own);
      } else {
        E::add(shared, turn, sums, steps, own);
      }
      held.apply(sums);
    }
  }
};
