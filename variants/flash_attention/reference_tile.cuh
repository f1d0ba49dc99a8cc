// What attention's references share: 256 threads have a tile of 64 rows by 64 others, 4 x 4 products each, and read
// in turn what they need. A block for each row takes minutes for long sequences. Each reference includes this once.
#include "heads.cuh"
#include "vector_io.cuh"

constexpr int kThreads = 256, kTile = 64, kDepth = 16, kSide = 16, kEach = kTile / kSide;
using Tile = float[kTile][kTile + 1];  // of a row of the one side and a row of the other
using Thread = float[kEach][kEach];    // row_of(i) of the one side and column_of(j) of the other

__device__ inline int row_of(int i) { return int(threadIdx.x) / kSide + kSide * i; }
__device__ inline int column_of(int j) { return int(threadIdx.x) % kSide + kSide * j; }
__device__ inline int least(int a, int b) { return a < b ? a : b; }
__device__ inline int most(int a, int b) { return a < b ? b : a; }

// From the first row of all heads to a row of one.
template <int D>
__device__ long long offset_of(const Heads<D>& heads, int head, int row) {
  return heads.begin(head) + static_cast<long long>(row) * heads.pitch();
}

struct Operands {
  float left[kDepth][kTile + 1], right[kDepth][kTile + 1];
};

// Some columns of up to 64 rows; zeros for those that are not there.
template <typename T>
__device__ void load_columns(float (&to)[kDepth][kTile + 1], const T* from, int pitch, int rows, int first) {
  for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
    const int row = i / kDepth, column = i % kDepth;
    to[column][row] =
        row < rows ? float(to_float(from[static_cast<long long>(row) * pitch + first + column])) : 0.0f;
  }
}

// The products of rows of `left` with rows of `right`; a pitch is the distance between rows.
template <int D, typename T>
__device__ void multiply(Thread& products, Operands& operands, const T* left, int left_pitch, int left_rows,
                         const T* right, int right_pitch, int right_rows) {
  for (int i = 0; i < kEach * kEach; ++i) {
    products[i / kEach][i % kEach] = 0.0f;
  }
  for (int first = 0; first < D; first += kDepth) {
    load_columns(operands.left, left, left_pitch, left_rows, first);
    load_columns(operands.right, right, right_pitch, right_rows, first);
    __syncthreads();
    for (int d = 0; d < kDepth; ++d) {
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) {
          products[i][j] = fmaf(operands.left[d][row_of(i)], operands.right[d][column_of(j)], products[i][j]);
        }
      }
    }
    __syncthreads();
  }
}

// The product of each row of `a` with the same row of `b`, by way of `parts`.
template <int D, typename T>
__device__ void multiply_rows(float (&products)[kTile], Tile& parts, const T* a, const T* b, int pitch,
                              int rows) {
  for (int i = 0; i < kEach; ++i) {
    float part = 0.0f;
    for (int d = column_of(0); row_of(i) < rows && d < D; d += kSide) {
      const long long at = static_cast<long long>(row_of(i)) * pitch + d;
      part = fmaf(to_float(a[at]), to_float(b[at]), part);
    }
    parts[row_of(i)][column_of(0)] = part;
  }
  __syncthreads();
  if (threadIdx.x < kTile) {
    float sum = 0.0f;
    for (int part = 0; part < kSide; ++part) {
      sum += parts[threadIdx.x][part];
    }
    products[threadIdx.x] = sum;
  }
  __syncthreads();
}

// Which rows of the other side a thread's rows see: from `begin` on, up to `end`. What is not seen is not touched.
struct Seen {
  int begin[kEach], end[kEach];
};

// Sums of 64 in float32, added up in float64: one a row of this thread and every sixteenth column.
template <int D>
struct Sums {
  double of[kEach][D / kSide] = {};

  // weights[row][other] * from[other], of what is seen.
  template <typename T>
  __device__ void add(const Tile& weights, const T* from, int pitch, const Seen& seen, int others) {
    float part[kEach][D / kSide] = {};
    for (int other = 0; other < others; ++other) {
      float value[D / kSide];
      for (int j = 0; j < D / kSide; ++j) {
        value[j] = to_float(from[static_cast<long long>(other) * pitch + column_of(j)]);
      }
      for (int i = 0; i < kEach; ++i) {
        if (other < seen.begin[i] || other >= seen.end[i]) {
          continue;
        }
        for (int j = 0; j < D / kSide; ++j) {
          part[i][j] = fmaf(weights[row_of(i)][other], value[j], part[i][j]);
        }
      }
    }
    for (int i = 0; i < kEach; ++i) {
      for (int j = 0; j < D / kSide; ++j) {
        of[i][j] += part[i][j];
      }
    }
  }

  template <typename T>
  __device__ void store(T* to, int pitch, int rows, double scale) const {
    for (int i = 0; i < kEach; ++i) {
      for (int j = 0; row_of(i) < rows && j < D / kSide; ++j) {
        to[static_cast<long long>(row_of(i)) * pitch + column_of(j)] = from_float<T>(float(scale * of[i][j]));
      }
    }
  }
};

// 64 queries of one head, and the keys that belong to it.
struct Queries {
  int head, key_head;   // counted over all batches
  int position, count;  // of the first in its sequence; how many of the 64 there are

  __device__ Queries(long long block, int HQ, int HKV, int SQ) {
    const int tiles = (SQ + kTile - 1) / kTile;
    head = int(block / tiles);
    position = int(block % tiles) * kTile;
    key_head = head / HQ * HKV + head % HQ / (HQ / HKV);
    count = least(SQ - position, kTile);
  }

  // How many keys, counted from the first, a query of these sees.
  template <int CAUSAL>
  __device__ int seen(int query, int SQ, int SK) const {
    return CAUSAL ? most(0, least(SK, position + query + SK - SQ + 1)) : SK;
  }
};
