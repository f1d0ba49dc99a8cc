// The plain statement of attention's gradients: one block a query for dQ, one a key for dK and dV. Weights and
// slopes of a thousand columns at a time in float32, sums of those that are added up in float64.
#include "vector_io.cuh"

constexpr int kThreads = 256, kChunk = 1024;

template <typename T, int D>
struct Pass {
  const T *q, *k, *v, *o, *d_o;
  const float* lse;
  float scale;
  float *weights, *slopes;  // of a chunk

  // By one warp: the softmax's weight of a key for a query, and the slope of the score.
  __device__ void look(int at, long long query, long long key, bool seen) const {
    const int lane = threadIdx.x % 32;
    float score = 0.0f, product = 0.0f, delta = 0.0f;
    for (int d = lane; d < D; d += 32) {
      const float slope = to_float(d_o[query * D + d]);
      score = fmaf(to_float(q[query * D + d]), to_float(k[key * D + d]), score);
      product = fmaf(slope, to_float(v[key * D + d]), product);
      delta = fmaf(slope, to_float(o[query * D + d]), delta);
    }
    for (int other = 16; other > 0; other /= 2) {
      score += __shfl_xor_sync(0xffffffffu, score, other);
      product += __shfl_xor_sync(0xffffffffu, product, other);
      delta += __shfl_xor_sync(0xffffffffu, delta, other);
    }
    if (lane == 0) {
      const float weight = seen ? expf(score * scale - lse[query]) : 0.0f;
      weights[at] = weight;
      slopes[at] = weight * (product - delta);
    }
  }
};

// Adds up this thread's part of a chunk: weights[i] * from[i * D + d] for its column d.
template <typename T, int D>
__device__ float add_chunk(const float* weights, const T* from, int count) {
  float sum = 0.0f;
  for (int i = threadIdx.x / D; i < count; i += kThreads / D) {
    sum = fmaf(weights[i], to_float(from[static_cast<long long>(i) * D + threadIdx.x % D]), sum);
  }
  return sum;
}

// Stores scale * the sums of all threads of a column.
template <typename T, int D>
__device__ void store_sum(double sum, double* sums, double scale, T* to) {
  __syncthreads();
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x < D) {
    for (int other = threadIdx.x + D; other < kThreads; other += D) {
      sum += sums[other];
    }
    to[threadIdx.x] = from_float<T>(float(scale * sum));
  }
}

template <typename T, int D, int CAUSAL>
__global__ void __launch_bounds__(kThreads)
    flash_attention_backward_reference_queries(const T* q, const T* k, const T* v, const T* o, const T* d_o,
                                               const float* lse, T* dq, int HQ, int HKV, int SQ, int SK,
                                               float scale) {
  __shared__ float weights[kChunk], slopes[kChunk];
  __shared__ double sums[kThreads];
  const Pass<T, D> pass = {q, k, v, o, d_o, lse, scale, weights, slopes};
  const long long query = blockIdx.x, head = query / SQ;
  const long long first_key = (head / HQ * HKV + head % HQ / (HQ / HKV)) * SK;
  const int diagonal = int(query % SQ) + SK - SQ + 1;
  const int seen = CAUSAL && diagonal < SK ? diagonal : SK;
  double sum = 0.0;
  for (int first = 0; first < seen; first += kChunk) {
    const int count = seen - first < kChunk ? seen - first : kChunk;
    for (int i = threadIdx.x / 32; i < count; i += kThreads / 32) {
      pass.look(i, query, first_key + first + i, true);
    }
    __syncthreads();
    sum += add_chunk<T, D>(slopes, k + (first_key + first) * D, count);
    __syncthreads();
  }
  store_sum<T, D>(sum, sums, scale, dq + query * D);
}

template <typename T, int D, int CAUSAL>
__global__ void __launch_bounds__(kThreads)
    flash_attention_backward_reference_keys(const T* q, const T* k, const T* v, const T* o, const T* d_o,
                                            const float* lse, T* dk, T* dv, int HQ, int HKV, int SQ, int SK,
                                            float scale) {
  __shared__ float weights[kChunk], slopes[kChunk];
  __shared__ double sums[kThreads];
  const Pass<T, D> pass = {q, k, v, o, d_o, lse, scale, weights, slopes};
  const long long key = blockIdx.x, group = HQ / HKV;
  const int first_seer = CAUSAL ? int(key % SK) - (SK - SQ) : 0;  // the first query that sees the key
  double key_sum = 0.0, value_sum = 0.0;
  for (long long head = key / SK * group; head < (key / SK + 1) * group; ++head) {
    for (int first = 0; first < SQ; first += kChunk) {
      const int count = SQ - first < kChunk ? SQ - first : kChunk;
      for (int i = threadIdx.x / 32; i < count; i += kThreads / 32) {
        pass.look(i, head * SQ + first + i, key, first + i >= first_seer);
      }
      __syncthreads();
      key_sum += add_chunk<T, D>(slopes, q + (head * SQ + first) * D, count);
      value_sum += add_chunk<T, D>(weights, d_o + (head * SQ + first) * D, count);
      __syncthreads();
    }
  }
  store_sum<T, D>(key_sum, sums, scale, dk + key * D);
  store_sum<T, D>(value_sum, sums, 1.0, dv + key * D);
}
