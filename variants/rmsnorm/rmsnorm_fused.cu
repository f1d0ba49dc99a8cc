// RMSNorm forward with what stands beside it in a model: y[n, d] = s[n, d] * rstd[n] * w[d], where s is x or, with
// RESIDUAL, sum = x + residual, rounded to T as the addition by itself would be, and
// rstd[n] = 1 / sqrt(mean over d of s[n, d]^2 + eps). All in float32.
//
// x, residual, sum and y are N rows of D elements, row-major and dense, w has D elements; all are aligned to VECTOR
// elements. y may be x or residual, sum may be x or residual, y and sum differ.
//
// RESIDUAL  1 where residual is added and sum is stored, else neither is touched
// RSTD      1 where rstd is stored, which the backward pass needs, else it is not touched
// THREADS   threads that share one row
// BLOCK     threads of a block, which so works on BLOCK / THREADS rows at a time
// VECTOR    elements moved by one instruction, a divisor of D, at most 16 bytes
// MODE      0 two passes over memory, 1 the row stays in registers, 3 as 1, and each block has L2 fetch the rows of
//           a later one (see fetch_ahead.cuh)
// UNROLL    in mode 0 the vectors that are taken up at once; in mode 1 the rows that a thread holds at once; in mode
//           3 how far ahead L2 fetches, in steps of 2 MiB of x
// CACHE     a CacheHint
#include "fetch_ahead.cuh"
#include "row_combine.cuh"
#include "row_layout.cuh"
#include "vector_io.cuh"

enum Mode { kTwoPasses = 0, kRegisters = 1, kRegistersAhead = 3 };

template <typename T>
struct Arrays {
  const T* x;
  const T* residual;
  const T* w;
  T* sum;
  T* y;
  float* rstd;
};

template <int VECTOR, typename T>
__device__ __forceinline__ float sum_of_squares(const Vector<T, VECTOR>& items) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    sum += items.element(i) * items.element(i);
  }
  return sum;
}

template <int VECTOR, typename T>
__device__ __forceinline__ void add_to(Vector<T, VECTOR>& items, const Vector<T, VECTOR>& residual) {
  float values[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    values[i] = items.element(i) + residual.element(i);
  }
  items.round_from(values);
}

template <int CACHE, int VECTOR, typename T>
__device__ __forceinline__ void finish(T* y, const Vector<T, VECTOR>& items, const Vector<T, VECTOR>& weights,
                                       float scale) {
  float values[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    values[i] = items.element(i) * scale * weights.element(i);
  }
  Vector<T, VECTOR> result;
  result.round_from(values);
  store<CACHE>(y, result);
}

// Of a row; its first thread stores it.
template <int RSTD, long long D>
__device__ __forceinline__ float scale_of_row(float sum, float eps, float* rstd) {
  const float scale = rsqrtf(sum * (1.0f / float(D)) + eps);
  if (RSTD != 0 && threadIdx.x == 0) {
    *rstd = scale;
  }
  return scale;
}

// The items first, …, first + COUNT - 1 of a thread in the row at `start`, as far as they exist.
template <typename L, int CACHE, int COUNT, typename T>
__device__ __forceinline__ void load_items(Vector<T, L::kVector> (&items)[COUNT], const T* start, int first,
                                           bool exists) {
#pragma unroll
  for (int u = 0; u < COUNT; ++u) {
    items[u].raw = {};
    if (exists && first + u < L::kItems && L::inside(first + u)) {
      load<CACHE>(items[u], start + L::offset(first + u));
    }
  }
}

// Adds and stores what load_items found.
template <typename L, int CACHE, int COUNT, typename T>
__device__ __forceinline__ void add_items(Vector<T, L::kVector> (&items)[COUNT],
                                          const Vector<T, L::kVector> (&residual)[COUNT], T* sum, int first,
                                          bool exists) {
#pragma unroll
  for (int u = 0; u < COUNT; ++u) {
    add_to(items[u], residual[u]);
    if (exists && first + u < L::kItems && L::inside(first + u)) {
      store<CACHE>(sum + L::offset(first + u), items[u]);
    }
  }
}

// Reads the row twice, the second time from the caches if it fits; a thread reads back the part of `sum` that it has
// stored itself.
template <typename L, typename C, int RESIDUAL, int RSTD, int UNROLL, int CACHE, typename T>
__device__ __forceinline__ void two_passes(const Arrays<T>& arrays, long long row, long long N, float eps,
                                           typename C::Scratch& scratch) {
  using Element = Vector<T, L::kVector>;
  const long long start = row * L::kColumns;
  const bool exists = row < N;
  Sums<> squares[1] = {};
#pragma unroll 1
  for (int first = 0; exists && first < L::kItems; first += UNROLL) {
    Element items[UNROLL];
    load_items<L, kCacheDefault>(items, arrays.x + start, first, true);
    if constexpr (RESIDUAL != 0) {
      Element residual[UNROLL];
      load_items<L, CACHE>(residual, arrays.residual + start, first, true);
      add_items<L, kCacheDefault>(items, residual, arrays.sum + start, first, true);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      squares[0].values[0] += sum_of_squares(items[u]);
    }
  }
  C::combine(squares, scratch, 0);
  if (!exists) {
    return;
  }
  const float scale = scale_of_row<RSTD, L::kColumns>(squares[0].values[0], eps, arrays.rstd + row);
#pragma unroll 1
  for (int first = 0; first < L::kItems; first += UNROLL) {
    Element items[UNROLL], weights[UNROLL];
    load_items<L, CACHE>(items, (RESIDUAL ? arrays.sum : arrays.x) + start, first, true);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u < L::kItems && L::inside(first + u)) {
        load_constant(weights[u], arrays.w + L::offset(first + u));
        finish<CACHE>(arrays.y + start + L::offset(first + u), items[u], weights[u], scale);
      }
    }
  }
}

// TILE rows at once, first, first + step, …, all loaded before the first is used. Weights are fetched once for all of
// them.
template <typename L, typename C, int RESIDUAL, int RSTD, int TILE, int CACHE, typename T>
__device__ __forceinline__ void rows_in_registers(const Arrays<T>& arrays, long long first, int step,
                                                  long long N, float eps, typename C::Scratch& scratch) {
  using Element = Vector<T, L::kVector>;
  Element rows[TILE][L::kItems], residual[TILE][L::kItems];
  Sums<> squares[TILE] = {};
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const long long row = first + t * step;
    load_items<L, CACHE>(rows[t], arrays.x + row * L::kColumns, 0, row < N);
    if constexpr (RESIDUAL != 0) {
      load_items<L, CACHE>(residual[t], arrays.residual + row * L::kColumns, 0, row < N);
    }
  }
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const long long row = first + t * step;
    if constexpr (RESIDUAL != 0) {
      add_items<L, CACHE>(rows[t], residual[t], arrays.sum + row * L::kColumns, 0, row < N);
    }
#pragma unroll
    for (int i = 0; i < L::kItems; ++i) {
      squares[t].values[0] += sum_of_squares(rows[t][i]);
    }
  }
  C::combine(squares, scratch, 0);
  float scales[TILE];
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const long long row = first + t * step;
    if (row < N) {
      scales[t] = scale_of_row<RSTD, L::kColumns>(squares[t].values[0], eps, arrays.rstd + row);
    }
  }
#pragma unroll
  for (int i = 0; i < L::kItems; ++i) {
    Element weights;
    if (L::inside(i)) {
      load_constant(weights, arrays.w + L::offset(i));
    }
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      const long long row = first + t * step;
      if (row < N && L::inside(i)) {
        finish<CACHE>(arrays.y + row * L::kColumns + L::offset(i), rows[t][i], weights, scales[t]);
      }
    }
  }
}

// What a thread's part of its rows takes.
template <typename T, typename L, int RESIDUAL, int MODE, int UNROLL>
__host__ __device__ constexpr int row_registers() {
  constexpr int kItems = MODE == kTwoPasses ? UNROLL : L::kItems * (MODE == kRegisters ? UNROLL : 1);
  return (kItems * L::kVector * int(sizeof(T)) * (RESIDUAL ? 2 : 1) + 3) / 4;
}

template <typename T, int RESIDUAL, int RSTD, int THREADS, int BLOCK, int VECTOR, int MODE, int UNROLL,
          int CACHE, long long D>
__global__ void __launch_bounds__(
    BLOCK, resident_blocks(BLOCK, row_registers<T, RowLayout<THREADS, VECTOR, D>, RESIDUAL, MODE, UNROLL>()))
    rmsnorm_fused_forward(const T* x, const T* residual, const T* w, T* sum, T* y, float* rstd, long long N,
                          float eps) {
  constexpr int kRows = BLOCK / THREADS;
  constexpr int kTile = MODE == kRegisters ? UNROLL : 1;
  using L = RowLayout<THREADS, VECTOR, D>;
  using C = RowCombine<THREADS, kRows, Sums<>, kTile>;
  __shared__ typename C::Scratch scratch[kRows];
  typename C::Scratch& mine = scratch[threadIdx.y];
  const long long first = static_cast<long long>(blockIdx.x) * (kRows * kTile) + threadIdx.y;
  const Arrays<T> arrays{x, residual, w, sum, y, rstd};
  if constexpr (MODE == kTwoPasses) {
    two_passes<L, C, RESIDUAL, RSTD, UNROLL, CACHE>(arrays, first, N, eps, mine);
  } else {
    if constexpr (MODE == kRegistersAhead) {
      fetch_ahead<kRows, UNROLL*((RESIDUAL ? 1ll : 2ll) << 20), D>(x, N);
      if constexpr (RESIDUAL != 0) {
        fetch_ahead<kRows, UNROLL * (1ll << 20), D>(residual, N);
      }
    }
    rows_in_registers<L, C, RESIDUAL, RSTD, kTile, CACHE>(arrays, first, kRows, N, eps, mine);
  }
}
