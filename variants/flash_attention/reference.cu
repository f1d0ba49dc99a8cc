// The plain statement of attention: all scores against the highest one, float32 scores and weights, sums of 64
// products in float32 that are added up in float64. A block has 64 queries.
#include "reference_tile.cuh"

template <typename T, int D, int CAUSAL>
__global__ void __launch_bounds__(kThreads)
    flash_attention_forward_reference(const T* q, const T* k, const T* v, T* o, float* lse, int HQ, int HKV,
                                      int SQ, int SK, float scale, int q_row, int k_row, int v_row) {
  __shared__ Operands operands;
  __shared__ Tile weights;
  const Queries queries(blockIdx.x, HQ, HKV, SQ);
  const Heads<D> of_q{HQ, SQ, q_row}, of_o = of_q.dense(), of_k{HKV, SK, k_row}, of_v{HKV, SK, v_row};
  const int last = queries.seen<CAUSAL>(queries.count - 1, SQ, SK);
  int seen[kEach];
  float highest[kEach];
  for (int i = 0; i < kEach; ++i) {
    seen[i] = least(last, queries.seen<CAUSAL>(row_of(i), SQ, SK));
    highest[i] = __uint_as_float(0xff800000u);
  }
  Thread scores;
  const auto score = [&](int first) {
    multiply<D>(scores, operands, q + offset_of(of_q, queries.head, queries.position), of_q.pitch(),
                queries.count, k + offset_of(of_k, queries.key_head, first), of_k.pitch(),
                least(last - first, kTile));
  };
  for (int first = 0; first < last; first += kTile) {
    score(first);
    for (int i = 0; i < kEach; ++i) {
      for (int j = 0; j < kEach; ++j) {
        if (first + column_of(j) < seen[i]) {
          highest[i] = fmaxf(highest[i], scores[i][j] * scale);
        }
      }
    }
  }
  for (int i = 0; i < kEach; ++i) {
    weights[row_of(i)][column_of(0)] = highest[i];
  }
  __syncthreads();
  for (int i = 0; i < kEach; ++i) {
    for (int other = 0; other < kSide; ++other) {
      highest[i] = fmaxf(highest[i], weights[row_of(i)][other]);
    }
  }
  __syncthreads();

  Sums<D> sums;
  double totals[kEach] = {};
  for (int first = 0; first < last; first += kTile) {
    score(first);
    Seen here = {};
    for (int i = 0; i < kEach; ++i) {
      here.end[i] = seen[i] - first;
      for (int j = 0; j < kEach; ++j) {
        weights[row_of(i)][column_of(j)] = expf(scores[i][j] * scale - highest[i]);
      }
    }
    __syncthreads();
    const int keys = least(last - first, kTile);
    sums.add(weights, v + offset_of(of_v, queries.key_head, first), of_v.pitch(), here, keys);
    for (int i = 0; i < kEach; ++i) {
      float total = 0.0f;
      for (int key = 0; key < least(keys, here.end[i]); ++key) {
        total += weights[row_of(i)][key];
      }
      totals[i] += total;
    }
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i) {
    const int position = queries.position + row_of(i);
    const long long row = static_cast<long long>(queries.head) * SQ + position;
    T* to = o + offset_of(of_o, queries.head, position);
    for (int j = 0; row_of(i) < queries.count && j < D / kSide; ++j) {
      to[column_of(j)] = from_float<T>(seen[i] > 0 ? float(sums.of[i][j] / totals[i]) : 0.0f);
    }
    if (row_of(i) < queries.count && column_of(0) == 0) {
      lse[row] = seen[i] > 0 ? float(highest[i] + log(totals[i])) : highest[i];
    }
  }
}
