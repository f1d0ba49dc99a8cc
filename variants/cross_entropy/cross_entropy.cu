// Cross-entropy of rows and its gradient, computed in float32: loss[n] = log of the sum over d of e^x[n, d] - x[n,
// target[n]], and dx[n, d] = scale * (softmax of row n - 1 at target[n]). A row whose target is `ignored` has 0 for
// both.
//
// x and dx are N rows of D elements, row-major and dense, aligned to VECTOR elements; dx may be x.
//
// THREADS  threads of a block, which works on one row
// VECTOR   elements moved by one instruction, a divisor of D, at most 16 bytes
// MODE     0 two passes over memory, 1 the row stays in registers
// UNROLL   in mode 0 the vectors that are taken up at once
// CACHE    a CacheHint, or kKeptThenDropped in mode 0 (see kept_rows.cuh)
#include "score_parts.cuh"

enum Mode { kTwoPasses = 0, kRegisters = 1 };

// What the gradient of a row takes beside its elements.
struct Row {
  float base, scale, hit;  // the gradient is e^(x - base) * scale, less `hit` at `target`
  int target;
};

template <typename L, int CACHE, int COUNT, typename T>
__device__ __forceinline__ void store_gradient(T* dx, const Vector<T, L::kVector> (&items)[COUNT],
                                               Part<L, COUNT> part, const Row& row) {
#pragma unroll
  for (int u = 0; u < COUNT; ++u) {
    if (part.inside(u)) {
      float values[L::kVector];
#pragma unroll
      for (int i = 0; i < L::kVector; ++i) {
        const float hit = part.offset(u) + i == row.target ? row.hit : 0.0f;
        values[i] = exp_below(items[u].element(i), row.base) * row.scale - hit;
      }
      Vector<T, L::kVector> result;
      result.round_from(values);
      store<CACHE>(dx + part.offset(u), result);
    }
  }
}

template <typename L, typename T>
__device__ __forceinline__ void clear(T* dx) {
  Vector<T, L::kVector> zeros;
  zeros.raw = {};
#pragma unroll 1
  for (int i = 0; i < L::kItems; ++i) {
    if (L::inside(i)) {
      store<kCacheDefault>(dx + L::offset(i), zeros);
    }
  }
}

template <typename T, int THREADS, int VECTOR, int MODE, int UNROLL, int CACHE, long long D>
__global__ void __launch_bounds__(THREADS)
    cross_entropy(const T* x, const long long* targets, const float* scale, float* loss, T* dx,
                  long long ignored) {
  using L = RowLayout<THREADS, VECTOR, D>;
  using C = RowCombine<THREADS, 1, SoftmaxState>;
  constexpr int kCount = MODE == kRegisters ? L::kItems : UNROLL;
  __shared__ typename C::Scratch scratch;
  const long long n = blockIdx.x, target = targets[n];
  x += n * D;
  dx += n * D;
  if (target == ignored) {
    clear<L>(dx);
    if (threadIdx.x == 0) {
      loss[n] = 0.0f;
    }
    return;
  }
  const bool exists = target >= 0 && target < D;
  // Read before any thread stores, since dx may be x.
  const float chosen = exists ? to_float(x[target]) : __int_as_float(0x7fffffff);

  Vector<T, VECTOR> items[kCount];
  SoftmaxState states[1] = {SoftmaxState::none()};
#pragma unroll 1
  for (int first = 0; first < L::kItems; first += kCount) {
    const Part<L, kCount> part{first};
    load_part<L, CACHE, false>(items, x, part);
    states[0].merge(state_of<L>(items, part));
  }
  C::combine(states, scratch, 0);
  if (threadIdx.x == 0) {
    loss[n] = logf(states[0].sum) + (states[0].base() - chosen);
  }
  const Row row{states[0].base(), *scale / states[0].sum, *scale, exists ? int(target) : -1};
  if constexpr (MODE == kRegisters) {
    store_gradient<L, CACHE>(dx, items, Part<L, kCount>{0}, row);
  } else {
#pragma unroll 1
    for (int first = 0; first < L::kItems; first += kCount) {
      const Part<L, kCount> part{first};
      load_part<L, CACHE, true>(items, x, part);
      store_gradient<L, kStoresOf<CACHE>>(dx, items, part, row);
    }
  }
}
