// Dropout: which of the weights are kept, the same in both passes and for every configuration.
//
// Of each 16 x 16 tile of a head's weights (query / 16, key / 16 within their sequence) lane l of a warp draws 128 bits:
// Philox4x32-10 of the counter {query / 16 * 32 + l, key / 16, head, sequence} and the key `seed`. The word w of
// these, of four, is of the 8 x 8 part whose row is w % 2 and whose column w / 2: its halves are of row l / 4 and the
// columns l % 4 * 2 and the next. A weight is kept where its half is below `kept`.
#pragma once

#include "softmax.cuh"

struct Random128 {
  unsigned int words[4];
};

__device__ __forceinline__ Random128 philox(uint4 counter, unsigned long long seed) {
  unsigned int key0 = static_cast<unsigned int>(seed), key1 = static_cast<unsigned int>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned int high0 = __umulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
    const unsigned int high1 = __umulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
    counter = {high1 ^ counter.y ^ key0, low1, high0 ^ counter.w ^ key1, low0};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{counter.x, counter.y, counter.z, counter.w}};
}

template <bool ON>
struct Dropout {
  static constexpr bool kOn = ON;
  unsigned long long seed;
  unsigned int kept;  // of 65536
  int head, sequence;

  // From the caller's {seed, kept}.
  static __device__ __forceinline__ Dropout of(const long long* given, int head, int sequence) {
    if constexpr (ON) {
      return {static_cast<unsigned long long>(given[0]), static_cast<unsigned int>(given[1]), head, sequence};
    } else {
      return {};
    }
  }

  // What the kept weights are multiplied with, so that the mean stays.
  __device__ __forceinline__ float scale() const { return ON && kept > 0 ? 65536.0f / float(kept) : 1.0f; }

  // Turns the sign of the weights that are dropped, of 16 rows from `row` on, a multiple of 16 like `column`. ROWS_ARE_KEYS:
  // rows are keys and columns queries.
  template <bool ROWS_ARE_KEYS, int N8>
  __device__ __forceinline__ void mark(float (&weights)[N8][4], int row, int column) const {
    if constexpr (ON) {
#pragma unroll
      for (int j = 0; j < N8; j += 2) {
        const int other = column + j * 8;
        const unsigned int query = ROWS_ARE_KEYS ? other : row, key = ROWS_ARE_KEYS ? row : other;
        const Random128 random =
            philox({query / 16 * 32 + threadIdx.x % 32, key / 16, static_cast<unsigned int>(head),
                    static_cast<unsigned int>(sequence)},
                   seed);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          // The word of the weights' 8 x 8 part: its row is i / 2 % 2, its column i / 4.
          const int word = ROWS_ARE_KEYS ? i / 4 + i / 2 % 2 * 2 : i / 2;
          unsigned int halves = random.words[word];
          if constexpr (ROWS_ARE_KEYS) {
            halves = transposed(halves);
          }
          const unsigned int drawn = i % 2 == 0 ? halves & 0xffffu : halves >> 16;
          float& weight = weights[j + i / 4][i % 4];
          weight = drawn < kept ? weight : -weight;
        }
      }
    }
  }

  // The weights that are kept; 0 for others.
  template <int N8>
  static __device__ __forceinline__ void drop(float (&weights)[N8][4]) {
    if constexpr (ON) {
#pragma unroll
      for (int i = 0; i < N8 * 4; ++i) {
        weights[i / 4][i % 4] = fmaxf(weights[i / 4][i % 4], 0.0f);
      }
    }
  }

 private:
  static __device__ __forceinline__ unsigned int transposed(unsigned int halves) {
    unsigned int result;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(halves));
    return result;
  }
};
