// The plain statement of attention: one block a query, all scores against the highest one, float32 scores and
// weights, sums of a thousand products in float32 that are added up in float64.
#include "vector_io.cuh"

constexpr int kThreads = 256, kChunk = 1024;

// One query with the keys that it sees.
template <typename T, int D>
struct QueryRow {
  const T *query, *keys;
  int seen;
  float scale;

  // The scores of up to kChunk keys, one key a warp at a time.
  __device__ void score(float* scores, int first) const {
    const int lane = threadIdx.x % 32;
    for (int key = threadIdx.x / 32; key < kChunk && first + key < seen; key += kThreads / 32) {
      float sum = 0.0f;
      for (int d = lane; d < D; d += 32) {
        sum = fmaf(to_float(query[d]), to_float(keys[static_cast<long long>(first + key) * D + d]), sum);
      }
      for (int other = 16; other > 0; other /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
      }
      if (lane == 0) {
        scores[key] = sum * scale;
      }
    }
    __syncthreads();
  }
};

template <typename T, int D, int CAUSAL>
__global__ void __launch_bounds__(kThreads)
    flash_attention_forward_reference(const T* q, const T* k, const T* v, T* o, float* lse, int HQ, int HKV,
                                      int SQ, int SK, float scale) {
  constexpr int kParts = kThreads / D;  // of a chunk's keys, for each column
  __shared__ float scores[kChunk];
  __shared__ double sums[kThreads], totals[kThreads];
  const long long row = blockIdx.x;
  const long long head = row / SQ;
  const long long first_key = (head / HQ * HKV + head % HQ / (HQ / HKV)) * SK;
  const int diagonal = int(row % SQ) + SK - SQ + 1;
  const int seen = CAUSAL && diagonal < SK ? diagonal : SK;
  const QueryRow<T, D> query = {q + row * D, k + first_key * D, seen, scale};

  float highest = __uint_as_float(0xff800000u);
  for (int first = 0; first < seen; first += kChunk) {
    query.score(scores, first);
    for (int key = 0; key < kChunk && first + key < seen; ++key) {
      highest = fmaxf(highest, scores[key]);
    }
    __syncthreads();
  }
  const int column = threadIdx.x % D, part = threadIdx.x / D;
  double sum = 0.0, total = 0.0;
  for (int first = 0; first < seen; first += kChunk) {
    query.score(scores, first);
    float chunk_sum = 0.0f, chunk_total = 0.0f;
    for (int key = part; key < kChunk && first + key < seen; key += kParts) {
      const float weight = expf(scores[key] - highest);
      chunk_sum = fmaf(weight, to_float(v[(first_key + first + key) * D + column]), chunk_sum);
      chunk_total += weight;
    }
    sum += chunk_sum;
    total += chunk_total;
    __syncthreads();
  }
  sums[threadIdx.x] = sum;
  totals[threadIdx.x] = total;
  __syncthreads();
  if (part == 0) {
    for (int other = 1; other < kParts; ++other) {
      sum += sums[column + other * D];
      total += totals[column + other * D];
    }
    o[row * D + column] = from_float<T>(seen > 0 ? float(sum / total) : 0.0f);
    if (column == 0) {
      lse[row] = seen > 0 ? float(highest + log(total)) : highest;
    }
  }
}
