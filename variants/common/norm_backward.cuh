// Gradients of LayerNorm and RMSNorm. With h = (x - mean) * rstd (RMSNorm: x * rstd) and g = dy * w, in float32:
//
//   dx[n, d] = rstd[n] * (g[n, d] - h[n, d] * mean over d of g * h - mean over d of g)   the last for LayerNorm
//   dw[d] = sum over n of dy[n, d] * h[n, d],  db[d] = sum over n of dy[n, d]
//
// x, dy and dx are N rows of D elements, row-major and dense, aligned to VECTOR elements as w is; mean and rstd
// are float32. Sums over rows are partial sums of blocks (see column_sums.cuh). CENTERED tells LayerNorm from
// RMSNorm, which has neither mean nor db: these pointers are not used then.
#pragma once

#include "column_sums.cuh"
#include "row_layout.cuh"
#include "row_reduce.cuh"
#include "vector_io.cuh"

template <typename T>
struct NormGradients {
  const T* x;
  const T* w;
  const T* dy;
  const float* mean;
  const float* rstd;
  T* dx;
  float* partial_w;  // [blocks, D]
  float* partial_b;
  long long N;
};

struct NormScale {
  float mean;
  float rstd;

  __device__ __forceinline__ float normalized(float value) const { return (value - mean) * rstd; }
};

template <bool CENTERED, typename T>
__device__ __forceinline__ NormScale scale_of_row(const NormGradients<T>& g, long long row) {
  return {CENTERED ? g.mean[row] : 0.0f, g.rstd[row]};
}

// Means over the row that dx takes: of g * h, and for LayerNorm of g.
template <bool CENTERED>
struct GradientSums {
  float values[CENTERED ? 2 : 1] = {};

  template <int VECTOR, typename T>
  __device__ __forceinline__ void add(const Vector<T, VECTOR>& x, const Vector<T, VECTOR>& dy,
                                      const Vector<T, VECTOR>& w, const NormScale& scale) {
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
      const float g = dy.element(i) * w.element(i);
      values[0] += g * scale.normalized(x.element(i));
      if constexpr (CENTERED) {
        values[1] += g;
      }
    }
  }

  template <int CACHE, long long D, int VECTOR, typename T>
  __device__ __forceinline__ void store_dx(T* dx, const Vector<T, VECTOR>& x, const Vector<T, VECTOR>& dy,
                                           const Vector<T, VECTOR>& w, const NormScale& scale) const {
    constexpr float kShare = 1.0f / float(D);
    float results[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
      const float h = scale.normalized(x.element(i));
      float rest = dy.element(i) * w.element(i) - h * (values[0] * kShare);
      if constexpr (CENTERED) {
        rest -= values[1] * kShare;
      }
      results[i] = scale.rstd * rest;
    }
    Vector<T, VECTOR> result;
    result.round_from(results);
    store<CACHE>(dx, result);
  }
};

// One pass over x and dy: blocks go over the rows, ROWS at a time, and a thread keeps the sums of its columns
// until the end. AHEAD: the next row is loaded while one is worked on.
template <typename T, int THREADS, int ROWS, int VECTOR, int AHEAD, int CACHE, bool CENTERED, long long D>
struct FusedNormBackward {
  using L = RowLayout<THREADS, VECTOR, D>;
  using Element = Vector<T, VECTOR>;
  using Reduce = RowReduce<THREADS, ROWS, CENTERED ? 2 : 1>;

  struct Row {
    Element x[L::kItems];
    Element dy[L::kItems];
    NormScale scale;

    __device__ __forceinline__ void take(const NormGradients<T>& g, long long row) {
      if (row >= g.N) {
        return;
      }
      scale = scale_of_row<CENTERED>(g, row);
#pragma unroll
      for (int i = 0; i < L::kItems; ++i) {
        if (L::inside(i)) {
          load<CACHE>(x[i], g.x + row * D + L::offset(i));
          load<CACHE>(dy[i], g.dy + row * D + L::offset(i));
        }
      }
    }
  };

  // The sums over the rows of this thread.
  struct Columns {
    float dw[L::kItems][VECTOR] = {};
    float db[CENTERED ? L::kItems : 1][VECTOR] = {};

    __device__ __forceinline__ void add(int item, const Row& row) {
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) {
        const float dy = row.dy[item].element(i);
        dw[item][i] += dy * row.scale.normalized(row.x[item].element(i));
        if constexpr (CENTERED) {
          db[item][i] += dy;
        }
      }
    }
  };

  static __device__ __forceinline__ void work(const NormGradients<T>& g, const Row& row,
                                              const Element (&weights)[L::kItems], Columns& columns, T* dx,
                                              typename Reduce::Scratch& scratch, int turn) {
    GradientSums<CENTERED> sums;
#pragma unroll
    for (int i = 0; i < L::kItems; ++i) {
      if (L::inside(i)) {
        sums.add(row.x[i], row.dy[i], weights[i], row.scale);
        columns.add(i, row);
      }
    }
    Reduce::sum(sums.values, scratch, turn);
#pragma unroll
    for (int i = 0; i < L::kItems; ++i) {
      if (L::inside(i)) {
        sums.template store_dx<CACHE, D>(dx + L::offset(i), row.x[i], row.dy[i], weights[i], row.scale);
      }
    }
  }

  // `shared` holds D floats where ROWS is above 1. The groups add to it in turn. Their barrier is one that no
  // group has for itself.
  static __device__ __forceinline__ void store_partial(const float (*sums)[VECTOR], float* partial,
                                                       float* shared) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      if (int(threadIdx.y) == r) {
#pragma unroll
        for (int i = 0; i < L::kItems; ++i) {
#pragma unroll
          for (int v = 0; L::inside(i) && v < VECTOR; ++v) {
            const int d = L::offset(i) + v;
            const float sum = sums[i][v] + (r > 0 ? shared[d] : 0.0f);
            (r + 1 < ROWS ? shared : partial)[d] = sum;
          }
        }
      }
      if constexpr (ROWS > 1) {
        asm volatile("bar.sync %0, %1;" ::"n"(ROWS), "n"(THREADS * ROWS) : "memory");
      }
    }
  }

  static __device__ __forceinline__ void run(const NormGradients<T>& g, float* shared,
                                             typename Reduce::Scratch& scratch) {
    const long long stride = static_cast<long long>(gridDim.x) * ROWS;
    long long at = static_cast<long long>(blockIdx.x) * ROWS + threadIdx.y;
    Element weights[L::kItems];
#pragma unroll
    for (int i = 0; i < L::kItems; ++i) {
      if (L::inside(i)) {
        load_constant(weights[i], g.w + L::offset(i));
      }
    }
    Columns columns;
    Row row;
    if (AHEAD > 0) {
      row.take(g, at);
    }
#pragma unroll 1
    for (int turn = 0; at < g.N; at += stride, ++turn) {
      if constexpr (AHEAD > 0) {
        Row next;
        next.take(g, at + stride);
        work(g, row, weights, columns, g.dx + at * D, scratch, turn);
        row = next;
      } else {
        row.take(g, at);
        work(g, row, weights, columns, g.dx + at * D, scratch, turn);
      }
    }
    store_partial(columns.dw, g.partial_w + blockIdx.x * D, shared);
    if constexpr (CENTERED) {
      store_partial(columns.db, g.partial_b + blockIdx.x * D, shared);
    }
  }
};

// dx of one row of any length, by a block, in two passes over x and dy.
template <typename T, int THREADS, int VECTOR, int CACHE, bool CENTERED, long long D>
__device__ __forceinline__ void norm_dx(const NormGradients<T>& g,
                                        typename RowReduce<THREADS, 1, CENTERED ? 2 : 1>::Scratch& scratch) {
  using L = RowLayout<THREADS, VECTOR, D>;
  const long long row = blockIdx.x;
  const NormScale scale = scale_of_row<CENTERED>(g, row);
  GradientSums<CENTERED> sums;
  Vector<T, VECTOR> x, dy, w;
#pragma unroll 4
  for (int i = 0; i < L::kItems; ++i) {
    if (L::inside(i)) {
      load<kCacheDefault>(x, g.x + row * D + L::offset(i));
      load<kCacheDefault>(dy, g.dy + row * D + L::offset(i));
      load_constant(w, g.w + L::offset(i));
      sums.add(x, dy, w, scale);
    }
  }
  RowReduce<THREADS, 1, CENTERED ? 2 : 1>::sum(sums.values, scratch, 0);
#pragma unroll 4
  for (int i = 0; i < L::kItems; ++i) {
    if (L::inside(i)) {
      load<kCacheDefault>(x, g.x + row * D + L::offset(i));
      load<kCacheDefault>(dy, g.dy + row * D + L::offset(i));
      load_constant(w, g.w + L::offset(i));
      sums.template store_dx<CACHE, D>(g.dx + row * D + L::offset(i), x, dy, w, scale);
    }
  }
}

// The sums over rows of 32 * VECTOR columns, from x and dy, for rows too long for a block to keep theirs: rows
// blockIdx.y * ROWS + threadIdx.y, … of all rows, in steps of the grid.
template <typename T, int VECTOR, int ROWS, bool CENTERED, long long D>
__device__ __forceinline__ void norm_columns(const NormGradients<T>& g) {
  const long long first = static_cast<long long>(blockIdx.x) * (32 * VECTOR);
  const long long d = first + threadIdx.x * VECTOR;
  float dw[VECTOR] = {}, db[VECTOR] = {};
#pragma unroll 4
  for (long long row = static_cast<long long>(blockIdx.y) * ROWS + threadIdx.y; row < g.N;
       row += static_cast<long long>(gridDim.y) * ROWS) {
    if (d < D) {
      Vector<T, VECTOR> x, dy;
      load<kCacheDefault>(x, g.x + row * D + d);
      load<kCacheDefault>(dy, g.dy + row * D + d);
      const NormScale scale = scale_of_row<CENTERED>(g, row);
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) {
        dw[i] += dy.element(i) * scale.normalized(x.element(i));
        db[i] += dy.element(i);
      }
    }
  }
  store_column_sums<32, VECTOR, ROWS, D>(dw, g.partial_w + blockIdx.y * D, first);
  if constexpr (CENTERED) {
    __syncthreads();
    store_column_sums<32, VECTOR, ROWS, D>(db, g.partial_b + blockIdx.y * D, first);
  }
}

enum NormBackwardMode { kRowsThenColumns = 0, kFused = 1 };

// The first launch: everything but the final sums (kFused), or dx alone.
template <typename T, int THREADS, int BLOCK, int VECTOR, int MODE, int AHEAD, int CACHE, bool CENTERED,
          long long D>
__device__ __forceinline__ void norm_backward_rows(const NormGradients<T>& g) {
  if constexpr (MODE == kFused) {
    constexpr int kRows = BLOCK / THREADS;
    using Fused = FusedNormBackward<T, THREADS, kRows, VECTOR, AHEAD, CACHE, CENTERED, D>;
    __shared__ typename Fused::Reduce::Scratch scratch[kRows];
    __shared__ float sums[kRows > 1 ? D : 1];
    Fused::run(g, sums, scratch[threadIdx.y]);
  } else {
    __shared__ typename RowReduce<THREADS, 1, CENTERED ? 2 : 1>::Scratch scratch;
    norm_dx<T, THREADS, VECTOR, CACHE, CENTERED, D>(g, scratch);
  }
}
