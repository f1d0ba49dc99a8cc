// Gradients of the weighted sum over rows: dx[n, d] = dy[n] * w[d] and dw[d] = sum over n of dy[n] * x[n, d], in
// float32.
//
// x and dx are N rows of D elements, row-major and dense, w and dw have D elements, dy has N; x, dx and w are
// aligned to VECTOR elements. dx may be x.
//
// THREADS      threads beside each other: a block works on THREADS * VECTOR columns
// ROWS         rows that a block works on at a time, each by its own threads
// VECTOR       elements moved by one instruction, a divisor of D, at most 16 bytes
// UNROLL       rows that a thread takes up at once
// BLOCKS       blocks per multiprocessor; each stores its part of a partial row of dw
// CACHE        a CacheHint
// SUM_COLUMNS  columns of a block of the final sums
#include "column_sums.cuh"
#include "vector_io.cuh"

// Blocks (x, y) work on column tile x and, y of gridDim.y, on every gridDim.y-th tile of rows.
template <typename T, int THREADS, int ROWS, int VECTOR, int UNROLL, int CACHE, long long D>
__global__ void __launch_bounds__(THREADS* ROWS)
    weighted_sum_backward(const T* x, const T* w, const T* dy, T* dx, float* partial_w, long long N) {
  const long long tile = static_cast<long long>(blockIdx.x) * (THREADS * VECTOR);
  const long long d = tile + threadIdx.x * VECTOR;
  Vector<T, VECTOR> weights;
  weights.raw = {};
  if (d < D) {
    load_constant(weights, w + d);
  }
  float sums[VECTOR] = {};
  const long long stride = static_cast<long long>(gridDim.y) * (ROWS * UNROLL);
#pragma unroll 1
  for (long long first = static_cast<long long>(blockIdx.y) * (ROWS * UNROLL) + threadIdx.y;
       d < D && first < N; first += stride) {
    Vector<T, VECTOR> items[UNROLL];
    float gradients[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const long long row = first + u * ROWS;
      if (row < N) {
        load<CACHE>(items[u], x + row * D + d);
        gradients[u] = to_float(dy[row]);
      }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const long long row = first + u * ROWS;
      if (row < N) {
        float products[VECTOR];
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
          sums[i] += gradients[u] * items[u].element(i);
          products[i] = gradients[u] * weights.element(i);
        }
        items[u].round_from(products);
        store<CACHE>(dx + row * D + d, items[u]);
      }
    }
  }
  store_column_sums<THREADS, VECTOR, ROWS, D>(sums, partial_w + blockIdx.y * D, tile);
}

// dw from P rows of partial sums, in blocks of SUM_COLUMNS by 1024 / SUM_COLUMNS threads.
template <typename T, int SUM_COLUMNS, long long D>
__global__ void __launch_bounds__(1024)
    weighted_sum_backward_sums(const float* partial_w, T* dw, long long P) {
  add_partials<SUM_COLUMNS, 1024 / SUM_COLUMNS, D>(partial_w, dw, P);
}
