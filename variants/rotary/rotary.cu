// Rotary embedding: each element d of a head becomes x[d] * cos[d] + r * sin[d], where r is -x[d + D / 2] in the first
// half of the head and x[d - D / 2] in the second; with INVERSE the gradient, which turns back. In float32.
//
// q and k are N tokens of HQ and HKV heads of D elements, cos and sin C rows of D elements, of which token n takes row
// n % C; all are row-major, dense and aligned to VECTOR elements; q_out may be q and k_out may be k. With INVERSE q and k are the gradients of q_out and
// k_out.
//
// THREADS  threads of a block, which works on one token; those of one head have D / 2 / VECTOR lanes
// VECTOR   elements moved by one instruction, at most 16 bytes
// UNROLL   heads of one thread, all loaded before the first is used
#include "vector_io.cuh"

template <typename T, int VECTOR>
struct Pair {
  Vector<T, VECTOR> low, high;  // of the first and the second half of a head

  __device__ __forceinline__ void load_from(const T* head, int half) {
    load<kCacheDefault>(low, head);
    load<kCacheDefault>(high, head + half);
  }
  __device__ __forceinline__ void store_to(T* head, int half) const {
    store<kCacheDefault>(head, low);
    store<kCacheDefault>(head + half, high);
  }
};

// The gradient takes each sine with the element that it was multiplied with.
template <int INVERSE, typename T, int VECTOR>
__device__ __forceinline__ void rotate(Pair<T, VECTOR>& x, const Pair<T, VECTOR>& cosine,
                                       const Pair<T, VECTOR>& sine) {
  float low[VECTOR], high[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    const float a = x.low.element(i), b = x.high.element(i);
    const float of_a = sine.high.element(i), of_b = sine.low.element(i);
    low[i] = a * cosine.low.element(i) + (INVERSE ? b * of_a : -b * of_b);
    high[i] = b * cosine.high.element(i) + (INVERSE ? -a * of_b : a * of_a);
  }
  x.low.round_from(low);
  x.high.round_from(high);
}

// Of a token's heads those of q come first.
template <long long D, typename T>
__device__ __forceinline__ T* head_of(T* q, T* k, int HQ, int HKV, long long token, int head) {
  return head < HQ ? q + (token * HQ + head) * D : k + (token * HKV + (head - HQ)) * D;
}

template <typename T, int THREADS, int VECTOR, int UNROLL, int INVERSE, long long D>
__global__ void __launch_bounds__(THREADS) rotary(const T* q, const T* k, const T* cosines, const T* sines,
                                                  T* q_out, T* k_out, int HQ, int HKV, long long C) {
  constexpr int kHalf = int(D) / 2, kLanes = kHalf / VECTOR, kSlots = THREADS / kLanes;
  static_assert(kSlots >= 1, "a head has at most as many lanes as a block");
  const int lane = int(threadIdx.x) % kLanes * VECTOR, slot = int(threadIdx.x) / kLanes;
  if (slot >= kSlots) {
    return;
  }
  const long long token = blockIdx.x, row = token % C * D;
  Pair<T, VECTOR> cosine, sine, heads[UNROLL];
  cosine.load_from(cosines + row + lane, kHalf);
  sine.load_from(sines + row + lane, kHalf);
#pragma unroll 1
  for (int first = slot; first < HQ + HKV; first += kSlots * UNROLL) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u * kSlots < HQ + HKV) {
        heads[u].load_from(head_of<D>(q, k, HQ, HKV, token, first + u * kSlots) + lane, kHalf);
      }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      if (first + u * kSlots < HQ + HKV) {
        rotate<INVERSE>(heads[u], cosine, sine);
        heads[u].store_to(head_of<D>(q_out, k_out, HQ, HKV, token, first + u * kSlots) + lane, kHalf);
      }
    }
  }
}
