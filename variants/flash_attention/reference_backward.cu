// The plain statement of attention's gradients: a block has 64 queries for dQ, 64 keys for dK and dV. Weights and
// slopes in float32, sums of 64 of them in float32 that are added up in float64.
#include "reference_tile.cuh"

template <typename T, int D, int CAUSAL>
__global__ void __launch_bounds__(kThreads)
    flash_attention_backward_reference_queries(const T* q, const T* k, const T* v, const T* o, const T* d_o,
                                               const float* lse, T* dq, int HQ, int HKV, int SQ, int SK,
                                               float scale, int q_row, int k_row, int v_row) {
  __shared__ Operands operands;
  __shared__ Tile slopes;
  __shared__ float deltas[kTile];
  const Queries queries(blockIdx.x, HQ, HKV, SQ);
  const Heads<D> of_q{HQ, SQ, q_row}, of_o = of_q.dense(), of_k{HKV, SK, k_row}, of_v{HKV, SK, v_row};
  q += offset_of(of_q, queries.head, queries.position);
  const long long begin = offset_of(of_o, queries.head, queries.position);
  lse += static_cast<long long>(queries.head) * SQ + queries.position;
  multiply_rows<D>(deltas, slopes, d_o + begin, o + begin, of_o.pitch(), queries.count);
  const int last = queries.seen<CAUSAL>(queries.count - 1, SQ, SK);
  Sums<D> sums;
  for (int first = 0; first < last; first += kTile) {
    const T* keys = k + offset_of(of_k, queries.key_head, first);
    const T* values = v + offset_of(of_v, queries.key_head, first);
    const int count = least(last - first, kTile);
    Thread scores, products;
    multiply<D>(scores, operands, q, of_q.pitch(), queries.count, keys, of_k.pitch(), count);
    multiply<D>(products, operands, d_o + begin, of_o.pitch(), queries.count, values, of_v.pitch(), count);
    Seen seen = {};
    for (int i = 0; i < kEach; ++i) {
      const int query = row_of(i);
      seen.end[i] = query < queries.count ? queries.seen<CAUSAL>(query, SQ, SK) - first : 0;
      const float total = query < queries.count ? lse[query] : 0.0f;
      for (int j = 0; j < kEach; ++j) {
        slopes[query][column_of(j)] = expf(scores[i][j] * scale - total) * (products[i][j] - deltas[query]);
      }
    }
    __syncthreads();
    sums.add(slopes, keys, of_k.pitch(), seen, count);
    __syncthreads();
  }
  sums.store(dq + begin, of_o.pitch(), queries.count, scale);
}

template <typename T, int D, int CAUSAL>
__global__ void __launch_bounds__(kThreads)
    flash_attention_backward_reference_keys(const T* q, const T* k, const T* v, const T* o, const T* d_o,
                                            const float* lse, T* dk, T* dv, int HQ, int HKV, int SQ, int SK,
                                            float scale, int q_row, int k_row, int v_row) {
  __shared__ Operands operands;
  __shared__ Tile tile;
  __shared__ float deltas[kTile];
  const int tiles = (SK + kTile - 1) / kTile, group = HQ / HKV;
  const int position = int(blockIdx.x % tiles) * kTile, count = least(SK - position, kTile);
  const int key_head = int(blockIdx.x) / tiles;
  const Heads<D> of_q{HQ, SQ, q_row}, of_o = of_q.dense(), of_k{HKV, SK, k_row}, of_v{HKV, SK, v_row};
  k += offset_of(of_k, key_head, position);
  v += offset_of(of_v, key_head, position);
  // A key at `position` is seen from this query on.
  const int first_seer = CAUSAL ? most(0, position - (SK - SQ)) : 0;
  Sums<D> key_sums, value_sums;
  for (int head = key_head * group; head < (key_head + 1) * group; ++head) {
    for (int first = first_seer / kTile * kTile; first < SQ; first += kTile) {
      const long long row = static_cast<long long>(head) * SQ + first, begin = offset_of(of_o, head, first);
      const T* queries = q + offset_of(of_q, head, first);
      const int others = least(SQ - first, kTile);
      multiply_rows<D>(deltas, tile, d_o + begin, o + begin, of_o.pitch(), others);
      Thread weights, slopes;
      multiply<D>(weights, operands, k, of_k.pitch(), count, queries, of_q.pitch(), others);
      multiply<D>(slopes, operands, v, of_v.pitch(), count, d_o + begin, of_o.pitch(), others);
      Seen seen;
      for (int i = 0; i < kEach; ++i) {
        seen.begin[i] = CAUSAL ? position + row_of(i) - (SK - SQ) - first : 0;
        seen.end[i] = others;
        for (int j = 0; j < kEach; ++j) {
          const int query = column_of(j);
          const float total = query < others ? lse[row + query] : 0.0f;
          weights[i][j] = expf(weights[i][j] * scale - total);
          slopes[i][j] = weights[i][j] * (slopes[i][j] - deltas[query]);
          tile[row_of(i)][query] = weights[i][j];
        }
      }
      __syncthreads();
      value_sums.add(tile, d_o + begin, of_o.pitch(), seen, others);
      __syncthreads();
      for (int i = 0; i < kEach * kEach; ++i) {
        tile[row_of(i / kEach)][column_of(i % kEach)] = slopes[i / kEach][i % kEach];
      }
      __syncthreads();
      key_sums.add(tile, queries, of_q.pitch(), seen, others);
      __syncthreads();
    }
  }
  const Heads<D> of_dk = of_k.dense(), of_dv = of_v.dense();
  key_sums.store(dk + offset_of(of_dk, key_head, position), of_dk.pitch(), count, scale);
  value_sums.store(dv + offset_of(of_dv, key_head, position), of_dv.pitch(), count, 1.0);
}
