// The plain statement of attention's gradients: a block has 64 queries for dQ, 64 keys for dK and dV. Weights and
// slopes in float32, sums of 64 of them in float32 that are added up in float64.
#include "reference_tile.cuh"

// The rows that a block or its other side has: the first one of a head, how many, and the elements between them.
template <typename T>
struct Side {
  T* data;
  int rows, pitch;

  __device__ Side from(int row) const {
    return {data + static_cast<long long>(row) * pitch, rows - row, pitch};
  }
};

template <int D, typename T>
__device__ Side<T> side_of(T* all, const Heads<D>& heads, int head, const Rows& rows) {
  return {all + offset_of(heads, head, rows.begin), rows.count, heads.pitch()};
}

template <typename T, int D, typename Seen, int SOFT_CAP, int DROPOUT>
__device__ void find_dq(const Part& part, const Seen& mask, Side<const T> q, Side<const T> k, Side<const T> v,
                        Side<const T> o, Side<const T> d_o, const float* lse, Side<T> dq, float scale,
                        const long long* dropout) {
  __shared__ Operands operands;
  __shared__ Tile slopes;
  __shared__ float deltas[kTile];
  const int there = least(part.own.count - part.position, part.count);
  q = q.from(part.position);
  d_o = d_o.from(part.position);
  multiply_rows<D>(deltas, slopes, d_o.data, o.from(part.position).data, o.pitch, there);
  int last = 0;
  for (int row = 0; row < part.count; ++row) {
    last = most(last, mask.end(part.position + row));
  }
  Sums<D> sums;
  for (int first = mask.begin(part.position) / kTile * kTile; first < last; first += kTile) {
    const int count = least(mask.keys - first, kTile);
    Thread scores, products;
    multiply<D>(scores, operands, q.data, q.pitch, there, k.from(first).data, k.pitch, count);
    multiply<D>(products, operands, d_o.data, d_o.pitch, there, v.from(first).data, v.pitch, count);
    Seen64 seen;
    for (int i = 0; i < kEach; ++i) {
      const int query = row_of(i), position = part.position + query;
      seen.begin[i] = mask.begin(position) - first;
      seen.end[i] = query < there ? mask.end(position) - first : 0;
      const float total = query < there ? lse[position] : 0.0f;
      for (int j = 0; j < kEach; ++j) {
        const float score = score_of<SOFT_CAP>(scores[i][j], scale);
        const float product = products[i][j] * dropped<DROPOUT>(dropout, part.head, part.own.number, position,
                                                                first + column_of(j));
        slopes[query][column_of(j)] =
            expf(score - total) * (product - deltas[query]) * slope_of<SOFT_CAP>(score);
      }
    }
    __syncthreads();
    sums.add(slopes, k.from(first).data, k.pitch, seen, count);
    __syncthreads();
  }
  sums.store(dq.from(part.position).data, dq.pitch, part.count, scale);
}

template <typename T, int D, int CAUSAL, int LEFT = 0, int RIGHT = 0, int SOFT_CAP = 0>
__global__ void __launch_bounds__(kThreads)
    flash_attention_backward_reference_queries(const T* q, const T* k, const T* v, const T* o, const T* d_o,
                                               const float* lse, T* dq, int HQ, int HKV, int SQ, int SK,
                                               float scale, int q_row, int k_row, int v_row) {
  const Part part = dense_part(blockIdx.x, SQ);
  const int key_head = part.head / HQ * HKV + part.head % HQ / (HQ / HKV);
  const Heads<D> of_q{HQ, SQ, q_row}, of_o = of_q.dense();
  const Rows keys{0, 0, SK, SK};
  find_dq<T, D, Mask<CAUSAL, LEFT, RIGHT>, SOFT_CAP, 0>(
      part, {SQ, SK}, side_of(q, of_q, part.head, part.own),
      side_of(k, Heads<D>{HKV, SK, k_row}, key_head, keys),
      side_of(v, Heads<D>{HKV, SK, v_row}, key_head, keys), side_of(o, of_o, part.head, part.own),
      side_of(d_o, of_o, part.head, part.own), lse + static_cast<long long>(part.head) * SQ,
      side_of(dq, of_o, part.head, part.own), scale, nullptr);
}

template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int DROPOUT, int GAPS>
__global__ void __launch_bounds__(kThreads)
    flash_attention_packed_backward_reference_queries(const T* q, const T* k, const T* v, const T* o,
                                                      const T* d_o, const float* lse, T* dq,
                                                      const int* q_bounds, const int* k_bounds,
                                                      const int* q_lengths, const int* k_lengths,
                                                      const long long* dropout, int N, int HQ, int HKV,
                                                      int SQ, int SK, float scale, int q_row, int k_row,
                                                      int v_row) {
  const Part part = packed_part(SQ / kTile + N + 1, q_bounds, q_lengths, N);
  if (part.count <= 0) {
    return;
  }
  const Rows keys = k_bounds == nullptr ? part.own : rows_of_sequence(k_bounds, k_lengths, part.own.number);
  const int key_head = part.head / (HQ / HKV);
  const Heads<D> of_q{HQ, SQ, q_row}, of_o = of_q.dense();
  find_dq<T, D, Mask<CAUSAL, LEFT, RIGHT>, SOFT_CAP, DROPOUT>(
      part, {part.own.count, keys.count}, side_of(q, of_q, part.head, part.own),
      side_of(k, Heads<D>{HKV, SK, k_row}, key_head, keys),
      side_of(v, Heads<D>{HKV, SK, v_row}, key_head, keys), side_of(o, of_o, part.head, part.own),
      side_of(d_o, of_o, part.head, part.own), lse + static_cast<long long>(part.head) * SQ + part.own.begin,
      side_of(dq, of_o, part.head, part.own), scale, dropout);
}

// What all heads of queries that share one of keys have: of the first one the rows of the sequence, and the elements
// from one head to the next.
template <typename T>
struct Group {
  Side<const T> first;
  long long step;

  __device__ Side<const T> of(int head) const { return {first.data + head * step, first.rows, first.pitch}; }
};

template <typename T, int D, typename Seen, int SOFT_CAP, int DROPOUT>
__device__ void find_dk_dv(const Part& part, const Seen& mask, const Group<T>& q, Side<const T> k,
                           Side<const T> v, const Group<T>& o, const Group<T>& d_o, const float* lse,
                           int lse_step, int group, Side<T> dk, Side<T> dv, float scale,
                           const long long* dropout) {
  __shared__ Operands operands;
  __shared__ Tile tile;
  __shared__ float deltas[kTile];
  const int there = least(part.own.count - part.position, part.count);
  k = k.from(part.position);
  v = v.from(part.position);
  Sums<D> key_sums, value_sums;
  for (int head = 0; head < group; ++head) {
    for (int first = 0; first < mask.queries; first += kTile) {
      const int others = least(mask.queries - first, kTile);
      bool any = false;  // of the queries sees any of the keys
      for (int query = first; query < first + others; ++query) {
        any = any || (mask.end(query) > part.position && mask.begin(query) < part.position + there);
      }
      if (!any) {
        continue;
      }
      const Side<const T> queries = q.of(head).from(first), slope_of_o = d_o.of(head).from(first);
      multiply_rows<D>(deltas, tile, slope_of_o.data, o.of(head).from(first).data, slope_of_o.pitch, others);
      Thread weights, slopes;
      multiply<D>(weights, operands, k.data, k.pitch, there, queries.data, queries.pitch, others);
      multiply<D>(slopes, operands, v.data, v.pitch, there, slope_of_o.data, slope_of_o.pitch, others);
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) {
          const int query = column_of(j), key = part.position + row_of(i);
          const float score = score_of<SOFT_CAP>(weights[i][j], scale);
          const float kept =
              dropped<DROPOUT>(dropout, part.head * group + head, part.own.number, first + query, key);
          const float total =
              query < others ? lse[static_cast<long long>(head) * lse_step + first + query] : 0.0f;
          const bool seen = query < others && row_of(i) < there && mask.sees(first + query, key);
          const float weight = seen ? expf(score - total) : 0.0f;
          weights[i][j] = weight * kept;
          slopes[i][j] = weight * (slopes[i][j] * kept - deltas[query]) * slope_of<SOFT_CAP>(score);
          tile[row_of(i)][query] = weights[i][j];
        }
      }
      Seen64 all;
      for (int i = 0; i < kEach; ++i) {
        all.begin[i] = 0;
        all.end[i] = others;
      }
      __syncthreads();
      value_sums.add(tile, slope_of_o.data, slope_of_o.pitch, all, others);
      __syncthreads();
      for (int i = 0; i < kEach * kEach; ++i) {
        tile[row_of(i / kEach)][column_of(i % kEach)] = slopes[i / kEach][i % kEach];
      }
      __syncthreads();
      key_sums.add(tile, queries.data, queries.pitch, all, others);
      __syncthreads();
    }
  }
  key_sums.store(dk.from(part.position).data, dk.pitch, part.count, scale);
  value_sums.store(dv.from(part.position).data, dv.pitch, part.count, 1.0);
}

template <typename T, int D, int CAUSAL, int LEFT = 0, int RIGHT = 0, int SOFT_CAP = 0>
__global__ void __launch_bounds__(kThreads)
    flash_attention_backward_reference_keys(const T* q, const T* k, const T* v, const T* o, const T* d_o,
                                            const float* lse, T* dk, T* dv, int HQ, int HKV, int SQ, int SK,
                                            float scale, int q_row, int k_row, int v_row) {
  const Part part = dense_part(blockIdx.x, SK);
  const int group = HQ / HKV, head = part.head * group;
  const Heads<D> of_q{HQ, SQ, q_row}, of_o = of_q.dense(), of_k{HKV, SK, k_row}, of_v{HKV, SK, v_row};
  const Rows queries{0, 0, SQ, SQ};
  find_dk_dv<T, D, Mask<CAUSAL, LEFT, RIGHT>, SOFT_CAP, 0>(
      part, {SQ, SK}, {side_of(q, of_q, head, queries), of_q.step()}, side_of(k, of_k, part.head, part.own),
      side_of(v, of_v, part.head, part.own), {side_of(o, of_o, head, queries), of_o.step()},
      {side_of(d_o, of_o, head, queries), of_o.step()}, lse + static_cast<long long>(head) * SQ, SQ, group,
      side_of(dk, of_k.dense(), part.head, part.own), side_of(dv, of_v.dense(), part.head, part.own), scale,
      nullptr);
}

template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int DROPOUT, int GAPS>
__global__ void __launch_bounds__(kThreads)
    flash_attention_packed_backward_reference_keys(const T* q, const T* k, const T* v, const T* o,
                                                   const T* d_o, const float* lse, T* dk, T* dv,
                                                   const int* q_bounds, const int* k_bounds,
                                                   const int* q_lengths, const int* k_lengths,
                                                   const long long* dropout, int N, int HQ, int HKV, int SQ,
                                                   int SK, float scale, int q_row, int k_row, int v_row) {
  const bool own = k_bounds == nullptr;
  const Part part =
      packed_part(SK / kTile + N + 1, own ? q_bounds : k_bounds, own ? q_lengths : k_lengths, N);
  if (part.count <= 0) {
    return;
  }
  const Rows queries = own ? part.own : rows_of_sequence(q_bounds, q_lengths, part.own.number);
  const int group = HQ / HKV, head = part.head * group;
  const Heads<D> of_q{HQ, SQ, q_row}, of_o = of_q.dense(), of_k{HKV, SK, k_row}, of_v{HKV, SK, v_row};
  find_dk_dv<T, D, Mask<CAUSAL, LEFT, RIGHT>, SOFT_CAP, DROPOUT>(
      part, {queries.count, part.own.count}, {side_of(q, of_q, head, queries), of_q.step()},
      side_of(k, of_k, part.head, part.own), side_of(v, of_v, part.head, part.own),
      {side_of(o, of_o, head, queries), of_o.step()}, {side_of(d_o, of_o, head, queries), of_o.step()},
      lse + static_cast<long long>(head) * SQ + queries.begin, SQ, group,
      side_of(dk, of_k.dense(), part.head, part.own), side_of(dv, of_v.dense(), part.head, part.own), scale,
      dropout);
}
