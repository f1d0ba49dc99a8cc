// The plain statement of attention: all scores against the highest one, float32 scores and weights, sums of 64
// products in float32 that are added up in float64. A block has 64 queries.
#include "reference_tile.cuh"

// The queries of `part`, and the keys from `first_key` on of a head. q, k, v and o: those of the first row.
template <typename T, int D, typename Seen, int SOFT_CAP, int DROPOUT>
__device__ void attend(const Part& part, const Seen& mask, int keys_in_all, const T* q, int q_pitch,
                       const T* k, int k_pitch, const T* v, int v_pitch, T* o, int o_pitch, float* lse,
                       float scale, const long long* dropout) {
  __shared__ Operands operands;
  __shared__ Tile weights;
  const int there = least(part.own.count - part.position, part.count);  // queries that are in no gap
  int begin[kEach], end[kEach], last = 0;
  float highest[kEach];
  for (int i = 0; i < kEach; ++i) {
    begin[i] = mask.begin(part.position + row_of(i));
    end[i] = most(begin[i], mask.end(part.position + row_of(i)));
    highest[i] = __uint_as_float(0xff800000u);
  }
  for (int row = 0; row < part.count; ++row) {
    last = most(last, mask.end(part.position + row));
  }
  const int from = mask.begin(part.position) / kTile * kTile;
  Thread scores;
  const auto score = [&](int first) {
    multiply<D>(scores, operands, q, q_pitch, there, k + static_cast<long long>(first) * k_pitch, k_pitch,
                least(keys_in_all - first, kTile));
    for (int i = 0; i < kEach * kEach; ++i) {
      scores[i / kEach][i % kEach] = score_of<SOFT_CAP>(scores[i / kEach][i % kEach], scale);
    }
  };
  for (int first = from; first < last; first += kTile) {
    score(first);
    for (int i = 0; i < kEach; ++i) {
      for (int j = 0; j < kEach; ++j) {
        if (mask.sees(part.position + row_of(i), first + column_of(j))) {
          highest[i] = fmaxf(highest[i], scores[i][j]);
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
  for (int first = from; first < last; first += kTile) {
    score(first);
    Seen64 here;
    for (int i = 0; i < kEach; ++i) {
      here.begin[i] = begin[i] - first;
      here.end[i] = end[i] - first;
      for (int j = 0; j < kEach; ++j) {
        weights[row_of(i)][column_of(j)] = expf(scores[i][j] - highest[i]);
      }
    }
    __syncthreads();
    const int keys = least(keys_in_all - first, kTile);
    for (int i = 0; i < kEach; ++i) {
      float total = 0.0f;
      for (int key = most(0, here.begin[i]); key < least(keys, here.end[i]); ++key) {
        total += weights[row_of(i)][key];
      }
      totals[i] += total;
    }
    __syncthreads();
    for (int i = 0; i < kEach * kEach; ++i) {
      const int row = row_of(i / kEach), column = column_of(i % kEach);
      weights[row][column] *=
          dropped<DROPOUT>(dropout, part.head, part.own.number, part.position + row, first + column);
    }
    __syncthreads();
    sums.add(weights, v + static_cast<long long>(first) * v_pitch, v_pitch, here, keys);
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i) {
    const bool sees = end[i] > begin[i];
    for (int j = 0; row_of(i) < part.count && j < D / kSide; ++j) {
      o[static_cast<long long>(row_of(i)) * o_pitch + column_of(j)] =
          from_float<T>(sees ? float(sums.of[i][j] / totals[i]) : 0.0f);
    }
    if (row_of(i) < part.count && column_of(0) == 0) {
      lse[row_of(i)] = sees ? float(highest[i] + log(totals[i])) : highest[i];
    }
  }
}

template <typename T, int D, int CAUSAL, int LEFT = 0, int RIGHT = 0, int SOFT_CAP = 0>
__global__ void __launch_bounds__(kThreads)
    flash_attention_forward_reference(const T* q, const T* k, const T* v, T* o, float* lse, int HQ, int HKV,
                                      int SQ, int SK, float scale, int q_row, int k_row, int v_row) {
  const Part part = dense_part(blockIdx.x, SQ);
  const int key_head = part.head / HQ * HKV + part.head % HQ / (HQ / HKV);
  const Heads<D> of_q{HQ, SQ, q_row}, of_o = of_q.dense(), of_k{HKV, SK, k_row}, of_v{HKV, SK, v_row};
  attend<T, D, Mask<CAUSAL, LEFT, RIGHT>, SOFT_CAP, 0>(
      part, {SQ, SK}, SK, q + offset_of(of_q, part.head, part.position), of_q.pitch(),
      k + of_k.begin(key_head), of_k.pitch(), v + of_v.begin(key_head), of_v.pitch(),
      o + offset_of(of_o, part.head, part.position), of_o.pitch(),
      lse + static_cast<long long>(part.head) * SQ + part.position, scale, nullptr);
}

template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int DROPOUT, int GAPS>
__global__ void __launch_bounds__(kThreads)
    flash_attention_packed_forward_reference(const T* q, const T* k, const T* v, T* o, float* lse,
                                             const int* q_bounds, const int* k_bounds, const int* q_lengths,
                                             const int* k_lengths, const long long* dropout, int N, int HQ,
                                             int HKV, int SQ, int SK, float scale, int q_row, int k_row,
                                             int v_row) {
  const Part part = packed_part(SQ / kTile + N + 1, q_bounds, q_lengths, N);
  if (part.count <= 0) {
    return;
  }
  const Rows keys = k_bounds == nullptr ? part.own : rows_of_sequence(k_bounds, k_lengths, part.own.number);
  const int key_head = part.head / (HQ / HKV), row = part.own.begin + part.position;
  const Heads<D> of_q{HQ, SQ, q_row}, of_o = of_q.dense(), of_k{HKV, SK, k_row}, of_v{HKV, SK, v_row};
  attend<T, D, Mask<CAUSAL, LEFT, RIGHT>, SOFT_CAP, DROPOUT>(
      part, {part.own.count, keys.count}, keys.count, q + offset_of(of_q, part.head, row), of_q.pitch(),
      k + offset_of(of_k, key_head, keys.begin), of_k.pitch(), v + offset_of(of_v, key_head, keys.begin),
      of_v.pitch(), o + offset_of(of_o, part.head, row), of_o.pitch(),
      lse + static_cast<long long>(part.head) * SQ + row, scale, dropout);
}
