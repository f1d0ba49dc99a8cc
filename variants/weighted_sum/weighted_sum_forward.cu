// Weighted sum over rows: y[n] = sum over d of x[n, d] * w[d], in float32.
//
// x is N rows of D elements, row-major and dense, w has D elements; both are aligned to VECTOR elements.
//
// THREADS  threads that share a row
// BLOCK    threads of a block: BLOCK / THREADS groups that share rows
// TILE     rows that a group works on at once, so that each weight is fetched once for all of them
// VECTOR   elements moved by one instruction, a divisor of D, at most 16 bytes
// UNROLL   vectors of each row that a thread takes up at once
// SPLIT    parts of a row, each summed by a block of its own, for few long rows; a second launch adds them up
// AHEAD    where above 0, each block has L2 fetch the rows of one that much later, in steps of 2 MiB of x (see
//          fetch_ahead.cuh)
// CACHE    a CacheHint for x
#include "fetch_ahead.cuh"
#include "row_combine.cuh"
#include "row_layout.cuh"
#include "vector_io.cuh"

// Adds the products of a thread's items first, …, first + UNROLL - 1 of TILE rows, below `end`.
template <typename L, int TILE, int UNROLL, int CACHE, typename T>
__device__ __forceinline__ void add_products(const T* x, const T* w, long long row, int step, long long N,
                                             int first, int end, Sums<> (&sums)[TILE]) {
  Vector<T, L::kVector> weights[UNROLL], items[TILE][UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    const bool inside = first + u < end && L::inside(first + u);
    weights[u].raw = {};
    if (inside) {
      load_constant(weights[u], w + L::offset(first + u));
    }
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      items[t][u].raw = {};
      if (inside && row + t * step < N) {
        load<CACHE>(items[t][u], x + (row + t * step) * L::kColumns + L::offset(first + u));
      }
    }
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
#pragma unroll
      for (int i = 0; i < L::kVector; ++i) {
        sums[t].values[0] += items[t][u].element(i) * weights[u].element(i);
      }
    }
  }
}

template <typename T, int THREADS, int BLOCK, int TILE, int VECTOR, int UNROLL, int SPLIT, int AHEAD,
          int CACHE, long long D>
__global__ void __launch_bounds__(BLOCK)
    weighted_sum_forward(const T* x, const T* w, T* y, float* partial, long long N) {
  constexpr int kRows = BLOCK / THREADS;
  using L = RowLayout<THREADS, VECTOR, D>;
  using C = RowCombine<THREADS, kRows, Sums<>, TILE>;
  __shared__ typename C::Scratch scratch[kRows];
  constexpr int kItems = (L::kItems + SPLIT - 1) / SPLIT;  // of a part
  const int start = int(blockIdx.y) * kItems;
  const int end = start + kItems < L::kItems ? start + kItems : L::kItems;
  const long long row = static_cast<long long>(blockIdx.x) * (kRows * TILE) + threadIdx.y;
  if constexpr (AHEAD > 0) {
    fetch_ahead<kRows * TILE, AHEAD * (2ll << 20), D>(x, N);
  }
  Sums<> sums[TILE] = {};
#pragma unroll 1
  for (int first = start; first < end; first += UNROLL) {
    add_products<L, TILE, UNROLL, CACHE>(x, w, row, kRows, N, first, end, sums);
  }
  C::combine(sums, scratch[threadIdx.y], 0);
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const long long n = row + t * kRows;
    if (threadIdx.x == 0 && n < N) {
      if constexpr (SPLIT > 1) {
        partial[blockIdx.y * N + n] = sums[t].values[0];
      } else {
        y[n] = from_float<T>(sums[t].values[0]);
      }
    }
  }
}

// y[n] from the sums of SPLIT parts, partial[SPLIT, N]; one row a thread.
template <typename T, int SPLIT>
__global__ void __launch_bounds__(128) weighted_sum_parts(const float* partial, T* y, long long N) {
  const long long n = static_cast<long long>(blockIdx.x) * 128 + threadIdx.x;
  if (n < N) {
    float sum = 0.0f;
#pragma unroll
    for (int part = 0; part < SPLIT; ++part) {
      sum += partial[part * N + n];
    }
    y[n] = from_float<T>(sum);
  }
}
