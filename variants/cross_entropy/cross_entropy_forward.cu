// Cross-entropy of rows without its gradient, computed in float32: lse[n] = log of the sum over d of e^x[n, d], and
// loss[n] = lse[n] - x[n, target[n]]. A row whose target is `ignored` has 0 for both.
//
// x is N rows of D elements, row-major and dense, aligned to VECTOR elements.
//
// THREADS  threads of a block, which works on one row
// VECTOR   elements moved by one instruction, a divisor of D, at most 16 bytes
// UNROLL   vectors of one thread, all loaded before the first is used
// CACHE    a CacheHint, of loads
#include "score_parts.cuh"

template <typename T, int THREADS, int VECTOR, int UNROLL, int CACHE, long long D>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_forward(const T* x, const long long* targets, float* loss, float* lse, long long ignored) {
  using L = RowLayout<THREADS, VECTOR, D>;
  using C = RowCombine<THREADS, 1, SoftmaxState>;
  __shared__ typename C::Scratch scratch;
  const long long n = blockIdx.x, target = targets[n];
  if (target == ignored) {
    if (threadIdx.x == 0) {
      loss[n] = lse[n] = 0.0f;
    }
    return;
  }
  x += n * D;
  SoftmaxState states[1] = {SoftmaxState::none()};
#pragma unroll 1
  for (int first = 0; first < L::kItems; first += UNROLL) {
    const Part<L, UNROLL> part{first};
    Vector<T, VECTOR> items[UNROLL];
    load_part<L, CACHE, true>(items, x, part);
    states[0].merge(state_of<L>(items, part));
  }
  C::combine(states, scratch, 0);
  if (threadIdx.x == 0) {
    const bool exists = target >= 0 && target < D;
    const float chosen = exists ? to_float(x[target]) : __int_as_float(0x7fffffff);
    const float base = states[0].base(), logarithm = logf(states[0].sum);
    lse[n] = base + logarithm;
    loss[n] = logarithm + (base - chosen);
  }
}
