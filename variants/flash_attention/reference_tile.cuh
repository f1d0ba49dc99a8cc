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
struct Seen64 {
  int begin[kEach], end[kEach];
};

// Sums of 64 in float32, added up in float64: one a row of this thread and every sixteenth column.
template <int D>
struct Sums {
  double of[kEach][D / kSide] = {};

  // weights[row][other] * from[other], of what is seen.
  template <typename T>
  __device__ void add(const Tile& weights, const T* from, int pitch, const Seen64& seen, int others) {
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

// A sequence: its first row, how many queries or keys it has, and how many rows up to the next one.
struct Rows {
  int number, begin, count, owned;
};

// What a block has: 64 queries, or keys, of one head and sequence, from `position` on. `count` of them are stored.
struct Part {
  int head, position, count;
  Rows own;
};

// Of dense heads, each its own sequence.
__device__ inline Part dense_part(long long block, int rows) {
  const int tiles = (rows + kTile - 1) / kTile, position = int(block % tiles) * kTile;
  return {int(block / tiles), position, least(rows - position, kTile), {0, 0, rows, rows}};
}

// Of packed sequences: number -1 has the rows before the first one.
__device__ inline Rows rows_of_sequence(const int* bounds, const int* lengths, int number) {
  const int begin = number < 0 ? 0 : bounds[number], owned = bounds[number + 1] - begin;
  const int count = number < 0 ? 0 : lengths != nullptr ? least(lengths[number], owned) : owned;
  return {number, begin, count, owned};
}

// The block's part of so many that a head has; none where `count` is not positive.
__device__ inline Part packed_part(int blocks_of_head, const int* bounds, const int* lengths, int sequences) {
  int tile = int(blockIdx.x) % blocks_of_head;
  for (int number = -1; number < sequences; ++number) {
    const Rows rows = rows_of_sequence(bounds, lengths, number);
    const int tiles = (rows.owned + kTile - 1) / kTile;
    if (tile < tiles) {
      return {int(blockIdx.x) / blocks_of_head, tile * kTile, least(rows.owned - tile * kTile, kTile), rows};
    }
    tile -= tiles;
  }
  return {0, 0, 0, {0, 0, 0, 0}};
}

// Which keys a query of a sequence sees. A bound of 0 is none.
template <int CAUSAL, int LEFT, int RIGHT>
struct Mask {
  int queries, keys;

  __device__ bool sees(int query, int key) const {
    const int distance = key - (query + keys - queries);
    return query < queries && key < keys && (CAUSAL == 0 || distance <= 0) &&
           (LEFT == 0 || distance > -LEFT) && (RIGHT == 0 || distance < RIGHT);
  }
  // Of the keys that a query sees, which are consecutive, the first, and the end.
  __device__ int begin(int query) const { return LEFT == 0 ? 0 : most(0, query + keys - queries - LEFT + 1); }
  __device__ int end(int query) const {
    const int farthest = CAUSAL != 0 ? 1 : RIGHT;
    return query >= queries ? 0 : farthest == 0 ? keys : least(keys, query + keys - queries + farthest);
  }
};

template <int SOFT_CAP>
__device__ inline float score_of(float product, float scale) {
  return SOFT_CAP == 0 ? product * scale : SOFT_CAP * tanhf(product * scale / SOFT_CAP);
}

// The derivative of a score by the scaled product.
template <int SOFT_CAP>
__device__ inline float slope_of(float score) {
  return SOFT_CAP == 0 ? 1.0f : 1.0f - score / SOFT_CAP * (score / SOFT_CAP);
}

// What a weight is multiplied with: 0, or the inverse of the part that is kept (dropout.cuh).
template <int DROPOUT>
__device__ inline float dropped(const long long* given, int head, int sequence, unsigned int query,
                                unsigned int key) {
  if (DROPOUT == 0) {
    return 1.0f;
  }
  unsigned int counter[4] = {query / 16 * 32 + query % 8 * 4 + key % 8 / 2, key / 16,
                             static_cast<unsigned int>(head), static_cast<unsigned int>(sequence)};
  unsigned int seed[2] = {static_cast<unsigned int>(given[0]), static_cast<unsigned int>(given[0] >> 32)};
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ull * counter[0], b = 0xCD9E8D57ull * counter[2];
    counter[0] = static_cast<unsigned int>(b >> 32) ^ counter[1] ^ seed[0];
    counter[1] = static_cast<unsigned int>(b);
    counter[2] = static_cast<unsigned int>(a >> 32) ^ counter[3] ^ seed[1];
    counter[3] = static_cast<unsigned int>(a);
    seed[0] += 0x9E3779B9u;
    seed[1] += 0xBB67AE85u;
  }
  const unsigned int drawn = counter[query / 8 % 2 + key / 8 % 2 * 2] >> (key % 2 * 16) & 0xffffu;
  return drawn < static_cast<unsigned long long>(given[1]) ? 65536.0f / float(given[1]) : 0.0f;
}
