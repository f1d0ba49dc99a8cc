// Rows of scores, of which a thread has up to COUNT vectors at a time, and the online softmax of them.
#pragma once

#include "kept_rows.cuh"
#include "row_layout.cuh"
#include "softmax_state.cuh"

// The items first, …, first + COUNT - 1 of a thread, as far as they exist.
template <typename L, int COUNT>
struct Part {
  int first;
  __device__ __forceinline__ bool inside(int u) const {
    return first + u < L::kItems && L::inside(first + u);
  }
  __device__ __forceinline__ int offset(int u) const { return L::offset(first + u); }
};

template <typename L, int CACHE, bool AGAIN, int COUNT, typename T>
__device__ __forceinline__ void load_part(Vector<T, L::kVector> (&items)[COUNT], const T* x,
                                          Part<L, COUNT> part) {
#pragma unroll
  for (int u = 0; u < COUNT; ++u) {
    items[u].raw = {};
    if (part.inside(u)) {
      load_twice<CACHE, AGAIN>(items[u], x + part.offset(u));
    }
  }
}

template <typename L, int COUNT, typename T>
__device__ __forceinline__ SoftmaxState state_of(const Vector<T, L::kVector> (&items)[COUNT],
                                                 Part<L, COUNT> part) {
  SoftmaxState state = SoftmaxState::none();
#pragma unroll
  for (int u = 0; u < COUNT; ++u) {
#pragma unroll
    for (int i = 0; i < L::kVector; ++i) {
      state.maximum = part.inside(u) ? fmaxf(state.maximum, items[u].element(i)) : state.maximum;
    }
  }
  const float base = state.base();
#pragma unroll
  for (int u = 0; u < COUNT; ++u) {
#pragma unroll
    for (int i = 0; i < L::kVector; ++i) {
      state.sum += part.inside(u) ? exp_below(items[u].element(i), base) : 0.0f;
    }
  }
  return state;
}
