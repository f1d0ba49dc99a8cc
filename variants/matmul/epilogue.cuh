// What becomes of the sums: bias, activation, rounding, and the way to global memory.
#pragma once

#include "cluster.cuh"
#include "vector_io.cuh"

enum Activation { kNone = 0, kGelu = 1, kSilu = 2 };

// erf by Abramowitz and Stegun 7.1.26, off by less than 2e-7: a few instructions and no branch, for each of a
// thread's hundred elements.
__device__ __forceinline__ float error_function(float x) {
  const float t = __fdividef(1.0f, fmaf(0.3275911f, fabsf(x), 1.0f));
  const float series =
      t * fmaf(t, fmaf(t, fmaf(t, fmaf(t, 1.061405429f, -1.453152027f), 1.421413741f), -0.284496736f),
               0.254829592f);
  return copysignf(1.0f - series * __expf(-x * x), x);
}

template <int ACTIVATION>
__device__ __forceinline__ float activate(float x) {
  if constexpr (ACTIVATION == kGelu) {
    return 0.5f * x * (1.0f + error_function(x * 0.70710678f));
  } else if constexpr (ACTIVATION == kSilu) {
    return __fdividef(x, 1.0f + __expf(-x));
  } else {
    return x;
  }
}

// The sums of one part of k, as they are.
template <typename Engine>
__device__ __forceinline__ void store_partial(const Engine& engine, float* partial, int m, int n, int M,
                                              int N) {
#pragma unroll
  for (int i = 0; i < Engine::kRows; ++i) {
    float* row = partial + static_cast<long long>(m + Engine::row(i)) * N;
    if (m + Engine::row(i) >= M) {
      continue;
    }
#pragma unroll
    for (int j = 0; j < Engine::kColumns; j += Engine::kRun) {
      const int column = n + Engine::column(j);
      if (N % Engine::kRun == 0) {
        if (column < N) {
          Vector<float, Engine::kRun> vector;
#pragma unroll
          for (int r = 0; r < Engine::kRun; ++r) {
            vector.words[r] = __float_as_uint(engine.sum(i, j + r));
          }
          store<kCacheDefault>(row + column, vector);
        }
      } else {
#pragma unroll
        for (int r = 0; r < Engine::kRun; ++r) {
          if (column + r < N) {
            row[column + r] = engine.sum(i, j + r);
          }
        }
      }
    }
  }
}

// Rows of the finished tile in shared memory, padded by one chunk of 16 bytes against bank conflicts.
template <typename T, int BLOCK_N>
constexpr int kFinishedPitch = BLOCK_N + 16 / int(sizeof(T));

// bias, if there is one, and activation; rounded to T in shared memory.
template <int BIAS, int ACTIVATION, int BLOCK_N, typename Engine, typename T>
__device__ __forceinline__ void finish(const Engine& engine, const T* bias, T* tile, int n, int N) {
#pragma unroll
  for (int j = 0; j < Engine::kColumns; j += Engine::kRun) {
    const int column = Engine::column(j);
    float offsets[Engine::kRun] = {};
    if constexpr (BIAS != 0) {
#pragma unroll
      for (int r = 0; r < Engine::kRun; ++r) {
        offsets[r] = n + column + r < N ? to_float(bias[n + column + r]) : 0.0f;
      }
    }
#pragma unroll
    for (int i = 0; i < Engine::kRows; ++i) {
      float values[Engine::kRun];
#pragma unroll
      for (int r = 0; r < Engine::kRun; ++r) {
        values[r] = engine.sum(i, j + r);
        if constexpr (BIAS != 0) {
          values[r] += offsets[r];
        }
        values[r] = activate<ACTIVATION>(values[r]);
      }
      Vector<T, Engine::kRun> vector;
      vector.round_from(values);
      store<kCacheDefault>(tile + Engine::row(i) * kFinishedPitch<T, BLOCK_N> + column, vector);
    }
  }
}

// The finished tile to C, 16 bytes a thread where the rows of C allow it.
template <int BLOCK_M, int BLOCK_N, int THREADS, typename T>
__device__ __forceinline__ void store_finished(const T* tile, T* c, int m, int n, int M, int N) {
  constexpr int kChunk = 16 / int(sizeof(T)), kPitch = kFinishedPitch<T, BLOCK_N>;
  if (N % kChunk == 0) {
#pragma unroll 4
    for (int i = threadIdx.x; i < BLOCK_M * BLOCK_N / kChunk; i += THREADS) {
      const int row = i / (BLOCK_N / kChunk), column = i % (BLOCK_N / kChunk) * kChunk;
      if (m + row < M && n + column < N) {
        Vector<T, kChunk> vector;
        load<kCacheDefault>(vector, tile + row * kPitch + column);
        store<kCacheDefault>(c + static_cast<long long>(m + row) * N + n + column, vector);
      }
    }
  } else {
#pragma unroll 1
    for (int i = threadIdx.x; i < BLOCK_M * BLOCK_N; i += THREADS) {
      const int row = i / BLOCK_N, column = i % BLOCK_N;
      if (m + row < M && n + column < N) {
        c[static_cast<long long>(m + row) * N + n + column] = tile[row * kPitch + column];
      }
    }
  }
}

// Rows of a tile of sums in shared memory, padded so that half a warp of an engine, four rows of eight columns,
// writes to all banks.
template <int BLOCK_N>
constexpr int kSumsPitch = BLOCK_N + 8;

// The sums of one part of k to this block's shared memory.
template <int BLOCK_N, typename Engine>
__device__ __forceinline__ void keep_sums(const Engine& engine, float* tile) {
#pragma unroll
  for (int i = 0; i < Engine::kRows; ++i) {
#pragma unroll
    for (int j = 0; j < Engine::kColumns; j += Engine::kRun) {
      Vector<float, Engine::kRun> vector;
#pragma unroll
      for (int r = 0; r < Engine::kRun; ++r) {
        vector.words[r] = __float_as_uint(engine.sum(i, j + r));
      }
      store<kCacheDefault>(tile + Engine::row(i) * kSumsPitch<BLOCK_N> + Engine::column(j), vector);
    }
  }
}

// Block `rank`'s share of the tile whose sums the PARTS blocks of a cluster keep at the address `sums`: these added
// up in order, bias and activation, and the way to C, four elements a thread.
template <int BLOCK_M, int BLOCK_N, int THREADS, int PARTS, int BIAS, int ACTIVATION, typename T>
__device__ __forceinline__ void store_share(unsigned int sums, int rank, const T* bias, T* c, int m, int n,
                                            int M, int N) {
  constexpr int kPerRow = BLOCK_N / 4, kShare = BLOCK_M * kPerRow / PARTS;
#pragma unroll 2
  for (int i = threadIdx.x; i < kShare; i += THREADS) {
    const int row = (rank * kShare + i) / kPerRow, column = (rank * kShare + i) % kPerRow * 4;
    if (m + row >= M || n + column >= N) {
      continue;
    }
    const unsigned int at = sums + (row * kSumsPitch<BLOCK_N> + column) * int(sizeof(float));
    float values[4] = {};
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
      const float4 other = load_of_block(at, part);
      values[0] += other.x;
      values[1] += other.y;
      values[2] += other.z;
      values[3] += other.w;
    }
    T* to = c + static_cast<long long>(m + row) * N + n + column;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      if constexpr (BIAS != 0) {
        values[r] += n + column + r < N ? to_float(bias[n + column + r]) : 0.0f;
      }
      values[r] = activate<ACTIVATION>(values[r]);
    }
    if (N % 4 == 0) {
      Vector<T, 4> vector;
      vector.round_from(values);
      store<kCacheDefault>(to, vector);
    } else {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        if (n + column + r < N) {
          to[r] = from_float<T>(values[r]);
        }
      }
    }
  }
}
