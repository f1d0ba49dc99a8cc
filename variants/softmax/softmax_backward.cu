// Gradient of softmax over rows, from its output: dx[n, d] = y[n, d] * (dy[n, d] - sum over d of y * dy),
// computed in float32.
//
// y, dy and dx are N rows of D elements, row-major and dense, aligned to VECTOR elements; dx may be y or dy.
//
// THREADS  threads that share one row
// BLOCK    threads of a block, which so works on BLOCK / THREADS rows at a time
// VECTOR   elements moved by one instruction, a divisor of D, at most 16 bytes
// MODE     0 two passes over memory, 1 the rows of y and dy stay in registers, 3 as 1, and each block has L2 fetch
//          the rows of a later one (see fetch_ahead.cuh)
// UNROLL   in mode 0 the vectors that are taken up at once; in mode 1 the rows that a thread holds at once; in mode
//          3 how far ahead L2 fetches, in steps of 1 MiB of each of y and dy
// CACHE    a CacheHint, or kKeptThenDropped in mode 0 (see kept_rows.cuh)
#include "fetch_ahead.cuh"
#include "kept_rows.cuh"
#include "row_combine.cuh"
#include "row_layout.cuh"

enum Mode { kTwoPasses = 0, kRegisters = 1, kRegistersAhead = 3 };

template <typename V, int VECTOR>
__device__ __forceinline__ float product_sum(const V& a, const V& b) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    sum += a.element(i) * b.element(i);
  }
  return sum;
}

template <int CACHE, int VECTOR, typename T>
__device__ __forceinline__ void store_gradient(T* dx, const Vector<T, VECTOR>& y, const Vector<T, VECTOR>& dy,
                                               float sum) {
  float values[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    values[i] = y.element(i) * (dy.element(i) - sum);
  }
  Vector<T, VECTOR> result;
  result.round_from(values);
  store<CACHE>(dx, result);
}

// The items first, …, first + UNROLL - 1 of a thread, as far as they exist, for the first time or again.
template <typename L, int UNROLL, int CACHE, bool AGAIN, typename T>
__device__ __forceinline__ void load_items(Vector<T, L::kVector> (&items)[UNROLL], const T* row, int first) {
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    items[u].raw = {};
    if (first + u < L::kItems && L::inside(first + u)) {
      load_twice<CACHE, AGAIN>(items[u], row + L::offset(first + u));
    }
  }
}

// Reads the rows twice; the second time they come from the caches if they fit.
template <typename L, typename C, int UNROLL, int CACHE, typename T>
__device__ __forceinline__ void two_passes(const T* y, const T* dy, T* dx, bool exists,
                                           typename C::Scratch& scratch) {
  using Element = Vector<T, L::kVector>;
  Element outputs[UNROLL], gradients[UNROLL];
  Sums<> sums[1] = {};
#pragma unroll 1
  for (int first = 0; exists && first < L::kItems; first += UNROLL) {
    load_items<L, UNROLL, CACHE, false>(outputs, y, first);
    load_items<L, UNROLL, CACHE, false>(gradients, dy, first);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      sums[0].values[0] += product_sum<Element, L::kVector>(outputs[u], gradients[u]);
    }
  }
  C::combine(sums, scratch, 0);
#pragma unroll 1
  for (int first = 0; exists && first < L::kItems; first += UNROLL) {
    load_items<L, UNROLL, CACHE, true>(outputs, y, first);
    load_items<L, UNROLL, CACHE, true>(gradients, dy, first);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u < L::kItems && L::inside(first + u)) {
        store_gradient<kStoresOf<CACHE>, L::kVector>(dx + L::offset(first + u), outputs[u], gradients[u],
                                                     sums[0].values[0]);
      }
    }
  }
}

// TILE rows at once, first, first + step, …, all loaded before the first is used.
template <typename L, typename C, int TILE, int CACHE, typename T>
__device__ __forceinline__ void rows_in_registers(const T* y, const T* dy, T* dx, long long first, int step,
                                                  long long N, typename C::Scratch& scratch) {
  using Element = Vector<T, L::kVector>;
  Element outputs[TILE][L::kItems], gradients[TILE][L::kItems];
  Sums<> sums[TILE] = {};
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const long long start = (first + t * step) * L::kColumns;
    const bool exists = first + t * step < N;
#pragma unroll
    for (int i = 0; i < L::kItems; ++i) {
      outputs[t][i].raw = {};
      gradients[t][i].raw = {};
      if (exists && L::inside(i)) {
        load<CACHE>(outputs[t][i], y + start + L::offset(i));
        load<CACHE>(gradients[t][i], dy + start + L::offset(i));
      }
    }
  }
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
#pragma unroll
    for (int i = 0; i < L::kItems; ++i) {
      sums[t].values[0] += product_sum<Element, L::kVector>(outputs[t][i], gradients[t][i]);
    }
  }
  C::combine(sums, scratch, 0);
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const long long row = first + t * step;
    if (row < N) {
#pragma unroll
      for (int i = 0; i < L::kItems; ++i) {
        if (L::inside(i)) {
          store_gradient<CACHE, L::kVector>(dx + row * L::kColumns + L::offset(i), outputs[t][i],
                                            gradients[t][i], sums[t].values[0]);
        }
      }
    }
  }
}

// What a thread's part of its rows takes.
template <typename T, typename L, int MODE, int UNROLL>
__host__ __device__ constexpr int row_registers() {
  constexpr int kItems = MODE == kTwoPasses ? UNROLL : L::kItems * (MODE == kRegisters ? UNROLL : 1);
  return (kItems * L::kVector * int(sizeof(T)) * 2 + 3) / 4;
}

template <typename T, int THREADS, int BLOCK, int VECTOR, int MODE, int UNROLL, int CACHE, long long D>
__global__ void __launch_bounds__(
    BLOCK, resident_blocks(BLOCK, row_registers<T, RowLayout<THREADS, VECTOR, D>, MODE, UNROLL>()))
    softmax_backward(const T* y, const T* dy, T* dx, long long N) {
  constexpr int kRows = BLOCK / THREADS;
  constexpr int kTile = MODE == kRegisters ? UNROLL : 1;
  using L = RowLayout<THREADS, VECTOR, D>;
  using C = RowCombine<THREADS, kRows, Sums<>, kTile>;
  __shared__ typename C::Scratch scratch[kRows];
  typename C::Scratch& mine = scratch[threadIdx.y];
  const long long first = static_cast<long long>(blockIdx.x) * (kRows * kTile) + threadIdx.y;
  if constexpr (MODE == kTwoPasses) {
    const long long start = first * D;
    two_passes<L, C, UNROLL, CACHE>(y + start, dy + start, dx + start, first < N, mine);
  } else {
    if constexpr (MODE == kRegistersAhead) {
      fetch_ahead<kRows, UNROLL * (1ll << 20), D>(y, N);
      fetch_ahead<kRows, UNROLL * (1ll << 20), D>(dy, N);
    }
    rows_in_registers<L, C, kTile, CACHE>(y, dy, dx, first, kRows, N, mine);
  }
}
