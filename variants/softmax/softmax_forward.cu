// Softmax over rows: y[n, d] = e^(x[n, d] - max of row n) / sum over d of the same, computed in float32.
//
// x and y are N rows of D elements, row-major and dense, aligned to VECTOR elements; y may be x.
//
// THREADS  threads that share one row
// BLOCK    threads of a block, which so works on ROWS = BLOCK / THREADS rows at a time
// VECTOR   elements moved by one instruction, a divisor of D, at most 16 bytes
// MODE     0 two passes over memory, 1 the row stays in registers, 2 it stays in shared memory, 3 as 1, and each
//          block has L2 fetch the rows of a later one (see fetch_ahead.cuh)
// UNROLL   in modes 0 and 2 the vectors that are taken up at once; in mode 1 the rows that a thread holds at
//          once; in mode 3 how far ahead L2 fetches, in steps of 2 MiB of x
// CACHE    a CacheHint
//
// The state of a row is that of the online softmax: one reduction gives maximum and sum together.
#include "fetch_ahead.cuh"
#include "row_layout.cuh"
#include "softmax_state.cuh"
#include "vector_io.cuh"

enum Mode { kTwoPasses = 0, kRegisters = 1, kSharedMemory = 2, kRegistersAhead = 3 };

// The state of COUNT values, of which `count` exist; replaces each by its exponential below the maximum.
template <int COUNT>
__device__ __forceinline__ SoftmaxState take_exponentials(float (&values)[COUNT]) {
  SoftmaxState state = SoftmaxState::none();
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    state.maximum = fmaxf(state.maximum, values[i]);
  }
  const float base = state.base();
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    values[i] = exp_below(values[i], base);
    state.sum += values[i];
  }
  return state;
}

// Reads the row twice, x for the state and again for the result.
template <typename L, typename C, int UNROLL, int CACHE, typename T>
__device__ __forceinline__ void two_passes(const T* x, T* y, bool exists, typename C::Scratch& scratch) {
  using Element = Vector<T, L::kVector>;
  SoftmaxState states[1] = {SoftmaxState::none()};
#pragma unroll 1
  for (int first = 0; exists && first < L::kItems; first += UNROLL) {
    Element items[UNROLL];
    float values[UNROLL * L::kVector];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u < L::kItems && L::inside(first + u)) {
        load<kCacheDefault>(items[u], x + L::offset(first + u));
      }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const bool inside = first + u < L::kItems && L::inside(first + u);
#pragma unroll
      for (int i = 0; i < L::kVector; ++i) {
        values[u * L::kVector + i] = inside ? items[u].element(i) : negative_infinity();
      }
    }
    states[0].merge(take_exponentials(values));
  }
  C::combine(states, scratch, 0);
  const float base = states[0].base(), scale = 1.0f / states[0].sum;
#pragma unroll 1
  for (int first = 0; exists && first < L::kItems; first += UNROLL) {
    Element items[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u < L::kItems && L::inside(first + u)) {
        load<CACHE>(items[u], x + L::offset(first + u));
      }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u < L::kItems && L::inside(first + u)) {
        float values[L::kVector];
#pragma unroll
        for (int i = 0; i < L::kVector; ++i) {
          values[i] = exp_below(items[u].element(i), base) * scale;
        }
        items[u].round_from(values);
        store<CACHE>(y + L::offset(first + u), items[u]);
      }
    }
  }
}

// The row copied to shared memory first, then read from there twice; a thread reads back only what it has copied
// itself.
template <typename L, typename C, int UNROLL, int CACHE, typename T>
__device__ __forceinline__ void row_in_shared_memory(const T* x, T* y, T* buffer, bool exists,
                                                     typename C::Scratch& scratch) {
#pragma unroll 4
  for (int i = 0; i < L::kItems; ++i) {
    if (exists && L::inside(i)) {
      copy_async<CACHE, T, L::kVector>(buffer + L::offset(i), x + L::offset(i));
    }
  }
  close_copy_group();
  wait_for_copies<0>();
  two_passes<L, C, UNROLL, CACHE == kCacheStreaming ? kCacheStreamingStores : CACHE>(
      static_cast<const T*>(buffer), y, exists, scratch);
}

// TILE rows at once, first, first + step, …, all loaded before the first is used.
template <typename L, typename C, int TILE, int CACHE, typename T>
__device__ __forceinline__ void rows_in_registers(const T* x, T* y, long long first, int step, long long N,
                                                  typename C::Scratch& scratch) {
  Vector<T, L::kVector> rows[TILE][L::kItems];
  float values[TILE][L::kItems * L::kVector];
  SoftmaxState states[TILE], own[TILE];
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
#pragma unroll
    for (int i = 0; i < L::kItems * L::kVector; ++i) {
      const bool inside = L::inside(i / L::kVector);
      values[t][i] = inside ? rows[t][i / L::kVector].element(i % L::kVector) : negative_infinity();
    }
    states[t] = own[t] = take_exponentials(values[t]);
  }
  C::combine(states, scratch, 0);
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const long long row = first + t * step;
    if (row < N) {
      const float scale = exp_below(own[t].maximum, states[t].base()) * (1.0f / states[t].sum);
#pragma unroll
      for (int i = 0; i < L::kItems; ++i) {
        float scaled[L::kVector];
#pragma unroll
        for (int v = 0; v < L::kVector; ++v) {
          scaled[v] = values[t][i * L::kVector + v] * scale;
        }
        Vector<T, L::kVector> result;
        result.round_from(scaled);
        if (L::inside(i)) {
          store<CACHE>(y + row * L::kColumns + L::offset(i), result);
        }
      }
    }
  }
}

// What a thread's part of its rows takes.
template <typename L, int MODE, int UNROLL>
__host__ __device__ constexpr int row_registers() {
  return MODE == kRegisters || MODE == kRegistersAhead
             ? L::kItems * L::kVector * (MODE == kRegisters ? UNROLL : 1)
             : 2 * UNROLL * L::kVector;
}

template <typename T, int THREADS, int BLOCK, int VECTOR, int MODE, int UNROLL, int CACHE, long long D>
__global__ void __launch_bounds__(
    BLOCK, resident_blocks(BLOCK, row_registers<RowLayout<THREADS, VECTOR, D>, MODE, UNROLL>()))
    softmax_forward(const T* x, T* y, long long N) {
  constexpr int kRows = BLOCK / THREADS;
  constexpr int kTile = MODE == kRegisters ? UNROLL : 1;
  using L = RowLayout<THREADS, VECTOR, D>;
  using C = RowCombine<THREADS, kRows, SoftmaxState, kTile>;
  __shared__ typename C::Scratch scratch[kRows];
  extern __shared__ __align__(16) unsigned char dynamic[];
  typename C::Scratch& mine = scratch[threadIdx.y];
  const long long first = static_cast<long long>(blockIdx.x) * (kRows * kTile) + threadIdx.y;
  if constexpr (MODE == kTwoPasses) {
    two_passes<L, C, UNROLL, CACHE>(x + first * D, y + first * D, first < N, mine);
  } else if constexpr (MODE == kSharedMemory) {
    T* buffer = reinterpret_cast<T*>(dynamic) + threadIdx.y * int(D);
    row_in_shared_memory<L, C, UNROLL, CACHE>(x + first * D, y + first * D, buffer, first < N, mine);
  } else {
    if constexpr (MODE == kRegistersAhead) {
      fetch_ahead<kRows, UNROLL * (2ll << 20), D>(x, N);
    }
    rows_in_registers<L, C, kTile, CACHE>(x, y, first, kRows, N, mine);
  }
}
