// LayerNorm forward: y[n, d] = (x[n, d] - mean[n]) * rstd[n] * w[d] + b[d], with the mean of row n and
// rstd[n] = 1 / sqrt(variance of row n + eps), both of which are saved for the backward pass. All in float32.
//
// x and y are N rows of D elements, row-major and dense, w and b have D elements; all are aligned to VECTOR
// elements. y may be x.
//
// THREADS  threads that share one row
// BLOCK    threads of a block, which so works on BLOCK / THREADS rows at a time
// VECTOR   elements moved by one instruction, a divisor of D, at most 16 bytes
// MODE     0 two passes over memory, 1 the row stays in registers, 3 as 1, and each block has L2 fetch the rows
//          of a later one (see fetch_ahead.cuh)
// UNROLL   in mode 0 the vectors that are taken up at once; in mode 1 the rows that a thread holds at once; in mode
//          3 how far ahead L2 fetches, in steps of 2 MiB of x
// CACHE    a CacheHint
#include "fetch_ahead.cuh"
#include "moments.cuh"
#include "row_layout.cuh"
#include "vector_io.cuh"

enum Mode { kTwoPasses = 0, kRegisters = 1, kRegistersAhead = 3 };

struct RowScale {
  float mean;
  float rstd;
};

// Of a row; its first thread saves it.
template <long long D>
__device__ __forceinline__ RowScale save_scale(const Moments& moments, float eps, float* mean, float* rstd) {
  const RowScale scale{moments.mean, rsqrtf(moments.deviations * (1.0f / float(D)) + eps)};
  if (threadIdx.x == 0) {
    *mean = scale.mean;
    *rstd = scale.rstd;
  }
  return scale;
}

template <int CACHE, int VECTOR, typename T>
__device__ __forceinline__ void finish(T* y, const Vector<T, VECTOR>& x, const Vector<T, VECTOR>& w,
                                       const Vector<T, VECTOR>& b, const RowScale& scale) {
  float values[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    values[i] = (x.element(i) - scale.mean) * scale.rstd * w.element(i) + b.element(i);
  }
  Vector<T, VECTOR> result;
  result.round_from(values);
  store<CACHE>(y, result);
}

// Of a thread's items first, …, first + COUNT - 1 of a row.
template <typename L, int COUNT, typename T>
__device__ __forceinline__ Moments moments_of_items(const Vector<T, L::kVector> (&items)[COUNT], int first) {
  float values[COUNT * L::kVector];
  int count = 0;
#pragma unroll
  for (int u = 0; u < COUNT; ++u) {
    const bool inside = first + u < L::kItems && L::inside(first + u);
    count += inside ? L::kVector : 0;
#pragma unroll
    for (int i = 0; i < L::kVector; ++i) {
      values[u * L::kVector + i] = inside ? items[u].element(i) : 0.0f;
    }
  }
  return moments_of(values, count);
}

// Reads the row twice; the second time it comes from the caches if it fits.
template <typename L, typename C, int UNROLL, int CACHE, typename T>
__device__ __forceinline__ void two_passes(const T* x, const T* w, const T* b, T* y, float* mean, float* rstd,
                                           bool exists, float eps, typename C::Scratch& scratch) {
  using Element = Vector<T, L::kVector>;
  Moments moments[1] = {Moments::none()};
#pragma unroll 1
  for (int first = 0; exists && first < L::kItems; first += UNROLL) {
    Element items[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u < L::kItems && L::inside(first + u)) {
        load<kCacheDefault>(items[u], x + L::offset(first + u));
      }
    }
    moments[0].merge(moments_of_items<L>(items, first));
  }
  C::combine(moments, scratch, 0);
  if (!exists) {
    return;
  }
  const RowScale scale = save_scale<L::kColumns>(moments[0], eps, mean, rstd);
#pragma unroll 1
  for (int first = 0; first < L::kItems; first += UNROLL) {
    Element items[UNROLL], weights[UNROLL], biases[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u < L::kItems && L::inside(first + u)) {
        load<CACHE>(items[u], x + L::offset(first + u));
        load_constant(weights[u], w + L::offset(first + u));
        load_constant(biases[u], b + L::offset(first + u));
      }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u < L::kItems && L::inside(first + u)) {
        finish<CACHE, L::kVector>(y + L::offset(first + u), items[u], weights[u], biases[u], scale);
      }
    }
  }
}

// TILE rows at once, first, first + step, …, all loaded before the first is used. Weights and biases are
// fetched once for all of them.
template <typename L, typename C, int TILE, int CACHE, typename T>
__device__ __forceinline__ void rows_in_registers(const T* x, const T* w, const T* b, T* y, float* mean,
                                                  float* rstd, long long first, int step, long long N,
                                                  float eps, typename C::Scratch& scratch) {
  Vector<T, L::kVector> rows[TILE][L::kItems];
  Moments moments[TILE];
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const bool exists = first + t * step < N;
#pragma unroll
    for (int i = 0; i < L::kItems; ++i) {
      rows[t][i].raw = {};
      if (exists && L::inside(i)) {
        load<CACHE>(rows[t][i], x + (first + t * step) * L::kColumns + L::offset(i));
      }
    }
  }
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    moments[t] = moments_of_items<L>(rows[t], 0);
  }
  C::combine(moments, scratch, 0);
  RowScale scales[TILE];
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const long long row = first + t * step;
    if (row < N) {
      scales[t] = save_scale<L::kColumns>(moments[t], eps, mean + row, rstd + row);
    }
  }
#pragma unroll
  for (int i = 0; i < L::kItems; ++i) {
    if (L::inside(i)) {
      Vector<T, L::kVector> weight, bias;
      load_constant(weight, w + L::offset(i));
      load_constant(bias, b + L::offset(i));
#pragma unroll
      for (int t = 0; t < TILE; ++t) {
        const long long row = first + t * step;
        if (row < N) {
          finish<CACHE, L::kVector>(y + row * L::kColumns + L::offset(i), rows[t][i], weight, bias,
                                    scales[t]);
        }
      }
    }
  }
}

// What a thread's part of its rows takes.
template <typename T, typename L, int MODE, int UNROLL>
__host__ __device__ constexpr int row_registers() {
  constexpr int kItems = MODE == kTwoPasses ? 3 * UNROLL : L::kItems * (MODE == kRegisters ? UNROLL : 1);
  return (kItems * L::kVector * int(sizeof(T)) + 3) / 4;
}

template <typename T, int THREADS, int BLOCK, int VECTOR, int MODE, int UNROLL, int CACHE, long long D>
__global__ void __launch_bounds__(
    BLOCK, resident_blocks(BLOCK, row_registers<T, RowLayout<THREADS, VECTOR, D>, MODE, UNROLL>()))
    layernorm_forward(const T* x, const T* w, const T* b, T* y, float* mean, float* rstd, long long N,
                      float eps) {
  constexpr int kRows = BLOCK / THREADS;
  constexpr int kTile = MODE == kRegisters ? UNROLL : 1;
  using L = RowLayout<THREADS, VECTOR, D>;
  using C = RowCombine<THREADS, kRows, Moments, kTile>;
  __shared__ typename C::Scratch scratch[kRows];
  typename C::Scratch& mine = scratch[threadIdx.y];
  const long long first = static_cast<long long>(blockIdx.x) * (kRows * kTile) + threadIdx.y;
  if constexpr (MODE == kTwoPasses) {
    two_passes<L, C, UNROLL, CACHE>(x + first * D, w, b, y + first * D, mean + first, rstd + first, first < N,
                                    eps, mine);
  } else {
    if constexpr (MODE == kRegistersAhead) {
      fetch_ahead<kRows, UNROLL * (2ll << 20), D>(x, N);
    }
    rows_in_registers<L, C, kTile, CACHE>(x, w, b, y, mean, rstd, first, kRows, N, eps, mine);
  }
}
