// RMSNorm forward: y[n, d] = x[n, d] / sqrt(mean over d of x[n, d]^2 + eps) * w[d], computed in float32.
//
// x and y are N rows of D elements, row-major and dense, w has D elements; all are aligned to VECTOR
// elements. y may be x.
//
// THREADS     threads that share one row; block (THREADS, ROWS)
// VECTOR      elements moved by one instruction, a divisor of D, at most 16 bytes
// ROWS        rows that a block works on at a time, each by its own threads
// MODE        0 two passes over memory, 1 the row stays in registers, 2 the row stays in shared memory,
//             3 as 1, and each block has L2 fetch the rows of a later one (which needs sm_90, x aligned to 16
//             bytes and rows of a multiple of them; before sm_90 it is mode 1)
// UNROLL      how far loads run ahead of their use: vectors in mode 0; in mode 1 the rows that a thread
//             holds at once (a block then ends after ROWS * UNROLL rows); in mode 2 the row buffers of
//             shared memory; in mode 3 how far ahead L2 fetches, in steps of 2 MiB of x
// CACHE       a CacheHint
// PERSISTENT  of the grid alone: 0, or blocks per multiprocessor, which go on until all rows are done (in
//             mode 2 with UNROLL > 1)
//
// D is compiled in, so that a row's loops unroll wholly and carry no bounds checks where THREADS * VECTOR
// divides D.
#include "row_reduce.cuh"
#include "vector_io.cuh"

enum Mode { kTwoPasses = 0, kRegisters = 1, kSharedMemory = 2, kRegistersAhead = 3 };

template <typename T, int THREADS, int VECTOR, int ROWS, int TILE, int CACHE, long long D>
struct Row {
  static_assert(D % VECTOR == 0 && D < (1ll << 31), "rows are whole vectors, offsets in a row are 32-bit");
  static constexpr int kVectors = int(D / VECTOR);
  static constexpr int kItems = (kVectors + THREADS - 1) / THREADS;  // vectors of one thread
  static constexpr bool kEven = kVectors % THREADS == 0;
  static constexpr int kRowWords = (kItems * VECTOR * int(sizeof(T)) + 3) / 4;
  // Weights of one thread that are few enough to be fetched before the sum is known, at the price of
  // registers.
  static constexpr bool kEarlyWeights = kRowWords <= 16;

  // Late weights come in chunks. The loads of a chunk cannot rise above the stores of the one before it,
  // because for all the compiler knows w and y overlap.
  static constexpr int kChunk = kItems < 4 ? kItems : 4;

  using Reduce = RowReduce<THREADS, ROWS, TILE>;
  using Element = Vector<T, VECTOR>;

  static __device__ __forceinline__ bool inside(int item) {
    return kEven || int(threadIdx.x) + item * THREADS < kVectors;
  }
  static __device__ __forceinline__ int offset(int item) {
    return (int(threadIdx.x) + item * THREADS) * VECTOR;
  }

  static __device__ __forceinline__ float sum_of_squares(const Element& vector) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
      const float value = vector.element(i);
      sum += value * value;
    }
    return sum;
  }

  static __device__ __forceinline__ void finish(T* y, const Element& x, const Element& w, float scale) {
    float values[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) values[i] = x.element(i) * scale * w.element(i);
    Element result;
    result.round_from(values);
    store<CACHE>(y, result);
  }

  static __device__ __forceinline__ float scale_of(float sum, float eps) {
    return rsqrtf(sum * (1.0f / float(D)) + eps);
  }

  // The scale of a row from each thread's sum of squares.
  static __device__ __forceinline__ float scale_of_row(float sum, float eps,
                                                       typename Reduce::Scratch& scratch, int turn) {
    float sums[1] = {sum};
    Reduce::sum(sums, scratch, turn);
    return scale_of(sums[0], eps);
  }
};

// Reads the row twice; the second time it comes from the caches if it fits.
template <typename R, typename T, int THREADS, int UNROLL, int CACHE>
__device__ __forceinline__ void two_passes(const T* x, const T* w, T* y, float eps,
                                           typename R::Reduce::Scratch& scratch) {
  float sum = 0.0f;
#pragma unroll 1
  for (int first = 0; first < R::kItems; first += UNROLL) {
    typename R::Element block[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      block[u].raw = {};
      if (first + u < R::kItems && R::inside(first + u))
        load<kCacheDefault>(block[u], x + R::offset(first + u));
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) sum += R::sum_of_squares(block[u]);
  }
  const float scale = R::scale_of_row(sum, eps, scratch, 0);
#pragma unroll 1
  for (int first = 0; first < R::kItems; first += UNROLL) {
    typename R::Element block[UNROLL], weight[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u >= R::kItems || !R::inside(first + u)) continue;
      load<CACHE>(block[u], x + R::offset(first + u));
      load_constant(weight[u], w + R::offset(first + u));
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u >= R::kItems || !R::inside(first + u)) continue;
      R::finish(y + R::offset(first + u), block[u], weight[u], scale);
    }
  }
}

// TILE rows at once, first, first + step, …, all loaded before the first is used. A weight is fetched once
// for all of them.
template <typename R, int TILE, int CACHE, typename T>
__device__ __forceinline__ void rows_in_registers(const T* x, const T* w, T* y, long long first, int step,
                                                  long long N, long long D, float eps,
                                                  typename R::Reduce::Scratch& scratch) {
  typename R::Element rows[TILE][R::kItems], early[R::kEarlyWeights ? R::kItems : 1];
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    const T* row = x + (first + t * step) * D;
    const bool exists = first + t * step < N;
#pragma unroll
    for (int i = 0; i < R::kItems; ++i) {
      rows[t][i].raw = {};
      if (exists && R::inside(i)) load<CACHE>(rows[t][i], row + R::offset(i));
    }
  }
  if constexpr (R::kEarlyWeights) {
#pragma unroll
    for (int i = 0; i < R::kItems; ++i) {
      if (R::inside(i)) load_constant(early[i], w + R::offset(i));
    }
  }
  float scales[TILE];
#pragma unroll
  for (int t = 0; t < TILE; ++t) {
    scales[t] = 0.0f;
#pragma unroll
    for (int i = 0; i < R::kItems; ++i) scales[t] += R::sum_of_squares(rows[t][i]);
  }
  R::Reduce::sum(scales, scratch, 0);
#pragma unroll
  for (int t = 0; t < TILE; ++t) scales[t] = R::scale_of(scales[t], eps);
#pragma unroll
  for (int start = 0; start < R::kItems; start += R::kChunk) {
    typename R::Element weights[R::kChunk];
#pragma unroll
    for (int i = start; i < start + R::kChunk && i < R::kItems; ++i) {
      if constexpr (R::kEarlyWeights) {
        weights[i - start] = early[i];
      } else if (R::inside(i)) {
        load<kCacheDefault>(weights[i - start], w + R::offset(i));
      }
    }
#pragma unroll
    for (int t = 0; t < TILE; ++t) {
      T* row = y + (first + t * step) * D;
      if (first + t * step >= N) break;
#pragma unroll
      for (int i = start; i < start + R::kChunk && i < R::kItems; ++i) {
        if (R::inside(i)) R::finish(row + R::offset(i), rows[t][i], weights[i - start], scales[t]);
      }
    }
  }
}

// Has L2 fetch the rows of the block that comes about BYTES of x later, as one request. A block's loads then
// find them there, so that memory streams on while blocks reduce, write and end, and is read in runs of whole
// rows. Nobody fetches for the first blocks, and the last have nobody to fetch for. Streaming loads
// (ld.cs) took up to a quarter longer with it than without, on an H200.
template <int ROWS, long long BYTES, long long D, typename T>
__device__ __forceinline__ void fetch_ahead(const T* x, long long N) {
#if __CUDA_ARCH__ >= 900
  constexpr long long kBlockBytes = ROWS * D * static_cast<long long>(sizeof(T));
  constexpr long long kBlocks = BYTES < kBlockBytes ? 1 : BYTES / kBlockBytes;
  static_assert(kBlockBytes % 16 == 0, "L2 fetches multiples of 16 bytes");
  const long long row = (blockIdx.x + kBlocks) * ROWS;
  if (threadIdx.x == 0 && threadIdx.y == 0 && row + ROWS <= N) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(x + row * D), "n"(int(kBlockBytes)));
  }
#endif
}

// The row first, and with UNROLL above 1 also first + stride, … below N, through UNROLL buffers of one row
// each in shared memory. A thread reads back only what it has copied itself.
template <typename R, int VECTOR, int UNROLL, int CACHE, typename T>
__device__ __forceinline__ void rows_in_shared_memory(const T* x, const T* w, T* y, T* buffers,
                                                      long long first, long long stride, long long N,
                                                      long long D, float eps,
                                                      typename R::Reduce::Scratch& scratch) {
  const auto start = [&](int buffer, long long row) {
    if (row < N) {
#pragma unroll 4
      for (int i = 0; i < R::kItems; ++i) {
        if (R::inside(i)) {
          copy_async<CACHE, T, VECTOR>(buffers + buffer * int(D) + R::offset(i), x + row * D + R::offset(i));
        }
      }
    }
    close_copy_group();
  };
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) start(u, first + u * stride);
  int turn = 0, buffer = 0;
  for (long long row = first; row < N; row += stride, ++turn) {
    wait_for_copies<UNROLL - 1>();
    const T* mine = buffers + buffer * int(D);
    float sum = 0.0f;
#pragma unroll 4
    for (int i = 0; i < R::kItems; ++i) {
      typename R::Element item;
      if (!R::inside(i)) continue;
      load<kCacheDefault>(item, mine + R::offset(i));
      sum += R::sum_of_squares(item);
    }
    const float scale = R::scale_of_row(sum, eps, scratch, turn);
#pragma unroll 4
    for (int i = 0; i < R::kItems; ++i) {
      typename R::Element item, weight;
      if (!R::inside(i)) continue;
      load<kCacheDefault>(item, mine + R::offset(i));
      load_constant(weight, w + R::offset(i));
      R::finish(y + row * D + R::offset(i), item, weight, scale);
    }
    if (UNROLL == 1) break;
    start(buffer, row + UNROLL * stride);
    buffer = buffer + 1 == UNROLL ? 0 : buffer + 1;
  }
}

// Blocks that a multiprocessor is to hold at once. Left alone, the compiler fetches the weights of a whole
// row ahead and pays with registers that a memory-bound kernel needs for more rows.
template <int BLOCK, int ROW_REGISTERS>
__host__ __device__ constexpr int resident_blocks() {
  constexpr int kRegisters = (ROW_REGISTERS + 64 + 7) / 8 * 8;
  constexpr int kBlocks = 65536 / (kRegisters * BLOCK);
  return kBlocks < 1 ? 1 : kBlocks > 2048 / BLOCK ? 2048 / BLOCK : kBlocks > 32 ? 32 : kBlocks;
}

template <typename R, int MODE, int UNROLL>
__host__ __device__ constexpr int row_registers() {
  constexpr int kRows = MODE == kRegisters ? UNROLL : MODE == kRegistersAhead ? 1 : 0;
  return kRows > 0 ? R::kRowWords * (kRows + (R::kEarlyWeights ? 1 : 0)) : 24;
}

template <typename T, int THREADS, int VECTOR, int ROWS, int MODE, int UNROLL, int CACHE, long long D>
__global__ void __launch_bounds__(
    THREADS* ROWS,
    resident_blocks<THREADS * ROWS,
                    row_registers<Row<T, THREADS, VECTOR, ROWS, 1, CACHE, D>, MODE, UNROLL>()>())
    rmsnorm_forward(const T* x, const T* w, T* y, long long N, float eps) {
  constexpr int kTile = MODE == kRegisters ? UNROLL : 1;
  using R = Row<T, THREADS, VECTOR, ROWS, kTile, CACHE, D>;
  __shared__ typename R::Reduce::Scratch scratch[ROWS];
  extern __shared__ __align__(16) unsigned char dynamic[];
  typename R::Reduce::Scratch& mine = scratch[threadIdx.y];
  const long long first = static_cast<long long>(blockIdx.x) * (ROWS * kTile) + threadIdx.y;
  if constexpr (MODE == kTwoPasses) {
    if (first < N) two_passes<R, T, THREADS, UNROLL, CACHE>(x + first * D, w, y + first * D, eps, mine);
  } else if constexpr (MODE == kRegisters || MODE == kRegistersAhead) {
    if constexpr (MODE == kRegistersAhead) fetch_ahead<ROWS, UNROLL * (2ll << 20), D>(x, N);
    rows_in_registers<R, kTile, CACHE>(x, w, y, first, ROWS, N, D, eps, mine);
  } else {
    const long long stride = static_cast<long long>(gridDim.x) * ROWS;
    T* buffers = reinterpret_cast<T*>(dynamic) + threadIdx.y * UNROLL * int(D);
    rows_in_shared_memory<R, VECTOR, UNROLL, CACHE>(x, w, y, buffers, first, stride, N, D, eps, mine);
  }
}
