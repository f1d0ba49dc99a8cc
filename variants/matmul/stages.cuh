// The tiles of A and B that a block multiplies, and their way through STAGES buffers in shared memory.
#pragma once

#include "tile_copy.cuh"
#include "vector_io.cuh"

// A thread's copies of an operand's tiles, step after step along k, by few instructions: beside products others get
// on slowly. Rows and columns outside of the matrix are those at its edge again, and what comes of them is not
// stored. All of a tile's k lies inside.
template <typename T, typename Tile, int THREADS, int BLOCK_K, bool ALONG_K>
struct TileFeed {
  static constexpr int kVector = 16 / int(sizeof(T));
  static constexpr int kPerRow = Tile::kPanelColumns / kVector, kRowStep = THREADS / kPerRow;
  // Whether each thread has as many of each panel, eight rows or a multiple of that apart.
  static constexpr bool kPossible = kRowStep % 8 == 0 && Tile::kRows % kRowStep == 0;
  static constexpr int kOfPanel = kPossible ? Tile::kRows / kRowStep : 1;
  static constexpr int kCopies = Tile::kPanels * kOfPanel;

  const T* from[kCopies];
  int below;        // elements from a step to the next where the tile's rows do not run along k
  unsigned int to;  // within a tile

  // The tile of the first step begins at `row` and `column`.
  __device__ __forceinline__ TileFeed(const Matrix<T>& matrix, int row, int column) {
    const int lane_row = int(threadIdx.x) / kPerRow;
    const int lane_column = int(threadIdx.x) % kPerRow * kVector;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int r = row + lane_row + i % kOfPanel * kRowStep;
      const int c = column + lane_column + i / kOfPanel * Tile::kPanelColumns;
      const int at_row = r < matrix.rows ? r : matrix.rows - 1;
      const int at_column = c < matrix.columns ? c : matrix.columns - kVector;
      from[i] = matrix.data + static_cast<long long>(at_row) * matrix.columns + at_column;
    }
    below = matrix.columns;
    to = Tile::offset(lane_row, lane_column);
  }

  // Starts the copies of the step that is STEP behind the one where the last round began.
  template <int STEP>
  __device__ __forceinline__ void start(unsigned int tile) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      copy_or_zero_async<16>(
          Tile::moved(tile + to, i % kOfPanel * kRowStep, i / kOfPanel * Tile::kPanelColumns),
          from[i] + (ALONG_K ? STEP * BLOCK_K : 0), true);
      if constexpr (!ALONG_K) {
        from[i] += static_cast<long long>(BLOCK_K) * below;
      }
    }
  }

  // The next round begins STEPS further on.
  template <int STEPS>
  __device__ __forceinline__ void move_on() {
    if constexpr (ALONG_K) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        from[i] += STEPS * BLOCK_K;
      }
    }
  }
};

template <typename Element, int BLOCK_M, int BLOCK_N, int BLOCK_K, int WARPS_M_, int WARPS_N_, int STAGES,
          int VECTOR, bool TRANSPOSE_A, bool TRANSPOSE_B>
struct Stages {
  using T = Element;
  // Whether the rows of an operand's tile run along k.
  static constexpr bool kLeftAlongK = !TRANSPOSE_A, kRightAlongK = TRANSPOSE_B;
  using Left = SwizzledTile<T, kLeftAlongK ? BLOCK_M : BLOCK_K, kLeftAlongK ? BLOCK_K : BLOCK_M>;
  using Right = SwizzledTile<T, kRightAlongK ? BLOCK_N : BLOCK_K, kRightAlongK ? BLOCK_K : BLOCK_N>;
  static constexpr int kBlockM = BLOCK_M, kBlockN = BLOCK_N, kBlockK = BLOCK_K;
  static constexpr int kWarpsM = WARPS_M_, kWarpsN = WARPS_N_, kThreads = WARPS_M_ * WARPS_N_ * 32;
  static constexpr int kStages = STAGES, kStageBytes = Left::kBytes + Right::kBytes;
  using LeftFeed = TileFeed<T, Left, kThreads, BLOCK_K, kLeftAlongK>;
  using RightFeed = TileFeed<T, Right, kThreads, BLOCK_K, kRightAlongK>;
  static constexpr bool kFed = VECTOR * int(sizeof(T)) == 16 && LeftFeed::kPossible && RightFeed::kPossible;

  Matrix<T> a, b;  // as they lie in memory
  int m, n;        // of the block's first element
  int k;           // where the block's part of k begins
  int steps;       // of BLOCK_K
  unsigned int shared;

  __device__ __forceinline__ unsigned int left(int step) const {
    return shared + step % STAGES * kStageBytes;
  }
  __device__ __forceinline__ unsigned int right(int step) const { return left(step) + Left::kBytes; }

  // Starts the copies of a step, if there is one, and closes their group.
  __device__ __forceinline__ void start(int step) const {
    if (step < steps) {
      const int at = k + step * BLOCK_K;
      TileCopy<T, Left, kThreads, VECTOR>::start(left(step), a, kLeftAlongK ? m : at, kLeftAlongK ? at : m);
      TileCopy<T, Right, kThreads, VECTOR>::start(right(step), b, kRightAlongK ? n : at,
                                                  kRightAlongK ? at : n);
    }
    close_copy_group();
  }

  // Steps whose tiles lie inside along k: all, or all but the last one.
  __device__ __forceinline__ int whole_steps() const {
    const int whole = ((kLeftAlongK ? a.columns : a.rows) - k) / BLOCK_K;
    return whole < steps ? whole : steps;
  }
  // The copies from a step on.
  __device__ __forceinline__ LeftFeed left_feed(int step) const {
    const int at = k + step * BLOCK_K;
    return LeftFeed(a, kLeftAlongK ? m : at, kLeftAlongK ? at : m);
  }
  __device__ __forceinline__ RightFeed right_feed(int step) const {
    const int at = k + step * BLOCK_K;
    return RightFeed(b, kRightAlongK ? n : at, kRightAlongK ? at : n);
  }
};
