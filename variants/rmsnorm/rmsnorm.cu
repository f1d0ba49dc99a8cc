// RMSNorm forward: y[n, d] = x[n, d] / sqrt(mean over d of x[n, d]^2 + eps) * w[d], computed in float32.
//
// x and y are N rows of D elements, row-major and dense, w has D elements; all are aligned to VECTOR elements. y may be x.
//
// THREADS     threads that share one row; block (THREADS, ROWS)
// VECTOR      elements moved by one instruction, a divisor of D, at most 16 bytes
// ROWS        rows that a block works on at a time, each by its own threads
// MODE        0 two passes over memory, 1 the row stays in registers, 2 the row stays in shared memory
// UNROLL      how far loads run ahead of their use: vectors in mode 0, whole rows in modes 1 and 2
// CACHE       a CacheHint
// PERSISTENT  0: a block ends after ROWS rows; else blocks per multiprocessor, which go on until all rows are done
//
// D is compiled in, so that a row's loops unroll wholly and carry no bounds checks where THREADS * VECTOR divides D.
#include "row_reduce.cuh"
#include "vector_io.cuh"

enum Mode { kTwoPasses = 0, kRegisters = 1, kSharedMemory = 2 };

template <typename T, int THREADS, int VECTOR, int ROWS, int CACHE, long long D>
struct Row {
    static_assert(D % VECTOR == 0 && D < (1ll << 31), "rows are whole vectors, offsets in a row are 32-bit");
    static constexpr int kVectors = int(D / VECTOR);
    static constexpr int kItems = (kVectors + THREADS - 1) / THREADS;  // vectors of one thread
    static constexpr bool kEven = kVectors % THREADS == 0;
    static constexpr int kRowWords = (kItems * VECTOR * int(sizeof(T)) + 3) / 4;
    // Weights of one thread that are few enough to be fetched before the sum is known, at the price of registers.
    static constexpr bool kEarlyWeights = kRowWords <= 16;

    // Late weights come in chunks. The loads of a chunk cannot rise above the stores of the one before it, because for all
    // the compiler knows w and y overlap.
    static constexpr int kChunk = kItems < 4 ? kItems : 4;

    using Reduce = RowReduce<THREADS, ROWS>;
    using Element = Vector<T, VECTOR>;

    static __device__ __forceinline__ bool inside(int item) {
        return kEven || int(threadIdx.x) + item * THREADS < kVectors;
    }
    static __device__ __forceinline__ int offset(int item) { return (int(threadIdx.x) + item * THREADS) * VECTOR; }

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
};

// Reads the row twice; the second time it comes from the caches if it fits.
template <typename R, typename T, int THREADS, int UNROLL, int CACHE>
__device__ __forceinline__ void two_passes(const T* x, const T* w, T* y, float eps, typename R::Reduce::Scratch& scratch,
                                           int turn) {
    float sum = 0.0f;
#pragma unroll 1
    for (int first = 0; first < R::kItems; first += UNROLL) {
        typename R::Element block[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            block[u].raw = {};
            if (first + u < R::kItems && R::inside(first + u)) load<kCacheDefault>(block[u], x + R::offset(first + u));
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) sum += R::sum_of_squares(block[u]);
    }
    const float scale = R::scale_of(R::Reduce::sum(sum, scratch, turn), eps);
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

template <typename R>
struct RegisterRow {
    typename R::Element items[R::kItems];
};

template <typename R, int CACHE, typename T>
__device__ __forceinline__ void load_row(RegisterRow<R>& row, const T* x) {
#pragma unroll
    for (int i = 0; i < R::kItems; ++i) {
        row.items[i].raw = {};
        if (R::inside(i)) load<CACHE>(row.items[i], x + R::offset(i));
    }
}

template <typename R, typename T>
__device__ __forceinline__ void load_weights(RegisterRow<R>& row, const T* w) {
#pragma unroll
    for (int i = 0; i < R::kItems; ++i) {
        if (R::inside(i)) load_constant(row.items[i], w + R::offset(i));
    }
}

template <typename R, typename T>
__device__ __forceinline__ void finish_registers(const RegisterRow<R>& row, const RegisterRow<R>& early, const T* w, T* y,
                                                 float eps, typename R::Reduce::Scratch& scratch, int turn) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < R::kItems; ++i) sum += R::sum_of_squares(row.items[i]);
    const float scale = R::scale_of(R::Reduce::sum(sum, scratch, turn), eps);
#pragma unroll
    for (int first = 0; first < R::kItems; first += R::kChunk) {
        typename R::Element weights[R::kChunk];
#pragma unroll
        for (int i = first; i < first + R::kChunk && i < R::kItems; ++i) {
            if constexpr (R::kEarlyWeights) {
                weights[i - first] = early.items[i];
            } else if (R::inside(i)) {
                load<kCacheDefault>(weights[i - first], w + R::offset(i));
            }
        }
#pragma unroll
        for (int i = first; i < first + R::kChunk && i < R::kItems; ++i) {
            if (R::inside(i)) R::finish(y + R::offset(i), row.items[i], weights[i - first], scale);
        }
    }
}

// The rows first, first + stride, … below N (with ONCE only the first), kept in registers; with UNROLL 2 the next row is
// under way meanwhile.
template <typename R, int UNROLL, int CACHE, bool ONCE, typename T>
__device__ __forceinline__ void rows_in_registers(const T* x, const T* w, T* y, long long first, long long stride,
                                                  long long N, long long D, float eps,
                                                  typename R::Reduce::Scratch& scratch) {
    static_assert(UNROLL == 1 || UNROLL == 2, "one row at work and at most one under way");
    RegisterRow<R> current, next, weights;
    if (first >= N) return;
    load_row<R, CACHE>(current, x + first * D);
    if constexpr (R::kEarlyWeights) load_weights<R>(weights, w);
    int turn = 0;
    for (long long row = first; row < N; row += stride, ++turn) {
        const bool more = !ONCE && row + stride < N;
        if (UNROLL == 2 && more) load_row<R, CACHE>(next, x + (row + stride) * D);
        finish_registers<R>(current, weights, w, y + row * D, eps, scratch, turn);
        if (UNROLL == 2) current = next;
        if (UNROLL == 1 && more) load_row<R, CACHE>(current, x + (row + stride) * D);
        if (ONCE) break;
    }
}

// The same through UNROLL buffers of one row each in shared memory. A thread reads back only what it has copied itself.
template <typename R, int VECTOR, int UNROLL, int CACHE, bool ONCE, typename T>
__device__ __forceinline__ void rows_in_shared_memory(const T* x, const T* w, T* y, T* buffers, long long first,
                                                      long long stride, long long N, long long D, float eps,
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
        const float scale = R::scale_of(R::Reduce::sum(sum, scratch, turn), eps);
#pragma unroll 4
        for (int i = 0; i < R::kItems; ++i) {
            typename R::Element item, weight;
            if (!R::inside(i)) continue;
            load<kCacheDefault>(item, mine + R::offset(i));
            load_constant(weight, w + R::offset(i));
            R::finish(y + row * D + R::offset(i), item, weight, scale);
        }
        if (ONCE) break;
        start(buffer, row + UNROLL * stride);
        buffer = buffer + 1 == UNROLL ? 0 : buffer + 1;
    }
}

// Blocks that a multiprocessor is to hold at once. Left alone, the compiler fetches the weights of a whole row ahead and
// pays with registers that a memory-bound kernel needs for more rows.
template <int BLOCK, int ROW_REGISTERS>
__host__ __device__ constexpr int resident_blocks() {
    constexpr int kRegisters = (ROW_REGISTERS + 56 + 7) / 8 * 8;
    constexpr int kBlocks = 65536 / (kRegisters * BLOCK);
    return kBlocks < 1 ? 1 : kBlocks > 2048 / BLOCK ? 2048 / BLOCK : kBlocks > 32 ? 32 : kBlocks;
}

template <typename R, int MODE, int UNROLL>
__host__ __device__ constexpr int row_registers() {
    return MODE == kRegisters ? R::kRowWords * (UNROLL + (R::kEarlyWeights ? 1 : 0)) : 24;
}

template <typename T, int THREADS, int VECTOR, int ROWS, int MODE, int UNROLL, int CACHE, int PERSISTENT, long long D>
__global__ void __launch_bounds__(THREADS* ROWS,
                                  resident_blocks<THREADS * ROWS,
                                                  row_registers<Row<T, THREADS, VECTOR, ROWS, CACHE, D>, MODE, UNROLL>()>())
    rmsnorm_forward(const T* x, const T* w, T* y, long long N, float eps) {
    using R = Row<T, THREADS, VECTOR, ROWS, CACHE, D>;
    __shared__ typename R::Reduce::Scratch scratch[ROWS];
    extern __shared__ __align__(16) unsigned char dynamic[];
    typename R::Reduce::Scratch& mine = scratch[threadIdx.y];
    const long long first = static_cast<long long>(blockIdx.x) * ROWS + threadIdx.y;
    const long long stride = static_cast<long long>(gridDim.x) * ROWS;
    constexpr bool kOnce = PERSISTENT == 0;
    if constexpr (MODE == kTwoPasses) {
        int turn = 0;
        for (long long row = first; row < N; row += stride, ++turn) {
            two_passes<R, T, THREADS, UNROLL, CACHE>(x + row * D, w, y + row * D, eps, mine, turn);
            if (kOnce) break;
        }
    } else if constexpr (MODE == kRegisters) {
        rows_in_registers<R, UNROLL, CACHE, kOnce>(x, w, y, first, stride, N, D, eps, mine);
    } else {
        T* buffers = reinterpret_cast<T*>(dynamic) + threadIdx.y * UNROLL * int(D);
        rows_in_shared_memory<R, VECTOR, UNROLL, CACHE, kOnce>(x, w, y, buffers, first, stride, N, D, eps, mine);
    }
}
