// dQ, dK and dV of flash_attention_forward from Q, K, V, O, L and dO; weights are computed anew.
//
// Layouts, scale, CAUSAL, LEFT, RIGHT and SOFT_CAP are the forward's. O, dO and dQ are dense and have the order of Q, dK that of K, dV that of
// V. dK and dV are summed over the heads of queries
// that share a head of keys. Three launches: what is known of each query, dK and dV, dQ. Scores are computed twice,
// and no sum is made by two blocks: the bits are the same every time. A launch of dK and dV that computes them once and
// adds dQ to float32 sums by atomics was tried on an H200, and took 1.06 to 1.20 times as long.
//
// ENGINE    0 mma.sync, 1 wgmma (sm_90a) with copies by TMA, or, of packed sequences, by cp.async
// KEY_BLOCK, KEY_COLUMNS, KEY_STAGES        keys of a block of flash_attention_backward_keys, queries that it takes
//                                           at a time, and buffers of shared memory that they go through
// QUERY_BLOCK, QUERY_COLUMNS, QUERY_STAGES  queries of a block of flash_attention_backward_queries, and so on
//
// Grids: cdiv(B * HQ * SQ, 16); cdiv(SK, KEY_BLOCK) * B * HKV; cdiv(SQ, QUERY_BLOCK) * B * HQ. Shared memory:
// 2 * (BLOCK + STAGES * COLUMNS) rows, and 1024 bytes for alignment; for wgmma 32 for each stage, and of keys
// 8 * KEY_COLUMNS more.
#include "engines.cuh"
#include "vector_io.cuh"

// 16 threads per query: `facts` for all of them.
template <typename T, int D>
__global__ void __launch_bounds__(256)
    flash_attention_backward_facts(const T* o, const T* d_o, const float* lse, float* facts,
                                   long long queries, int HQ, int SQ, int q_row) {
  const long long query = static_cast<long long>(blockIdx.x) * 16 + threadIdx.x / 16;
  const int lane = int(threadIdx.x) % 16;
  float sum = 0.0f;
#pragma unroll
  for (int first = 0; first < D; first += 128) {
    if (query < queries && first + lane * 8 < D) {
      const Heads<D> heads = Heads<D>{HQ, SQ, q_row}.dense();
      const long long at = heads.begin(int(query / SQ)) + query % SQ * heads.pitch() + first + lane * 8;
      Vector<T, 8> output, slope;
      load_constant(output, o + at);
      load_constant(slope, d_o + at);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        sum = fmaf(output.element(i), slope.element(i), sum);
      }
    }
  }
#pragma unroll
  for (int other = 8; other > 0; other /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, other);
  }
  if (query < queries && lane == 0) {
    const float logarithm = lse[query];
    facts[query * 2] = logarithm == minus_infinity() ? -minus_infinity() : logarithm * 1.44269504088896f;
    facts[query * 2 + 1] = sum;
  }
}

// dK and dV by one block take twice D registers of sums: beyond 128 the launch of PART 0 computes dV, that of PART 1 dK.
template <int D, int PART>
constexpr Gradients kGradientsOf = D <= 128    ? Gradients::kBoth
                                   : PART == 0 ? Gradients::kOfMates
                                               : Gradients::kOfRows;

// Heads whose blocks run side by side: causal blocks differ in length, and those of all these heads that have the most
// columns come first.
template <int CAUSAL>
constexpr int kHeadsTogether = CAUSAL != 0 ? 16 : 1;

// The blocks' part of dK and dV, and of dQ; without addresses where tensor maps have the operands.
template <typename Tile, int D, int SOFT_CAP, typename T>
__device__ __forceinline__ Tile tile_of_keys(TileOfHead block, const T* q, const T* k, const T* v,
                                             const T* d_o, const float* facts, int HQ, int HKV, int SQ,
                                             int SK, float scale, int q_row, int k_row, int v_row) {
  const int group = HQ / HKV, first_query_head = block.head * group;
  const Heads<D> of_q{HQ, SQ, q_row};
  return {rows_of(k, Heads<D>{HKV, SK, k_row}, block.head),
          rows_of(v, Heads<D>{HKV, SK, v_row}, block.head),
          rows_of(q, of_q, first_query_head),
          rows_of(d_o, of_q.dense(), first_query_head),
          of_q.step(),
          of_q.dense().step(),
          group,
          reinterpret_cast<const QueryFacts*>(facts) + static_cast<long long>(first_query_head) * SQ,
          SQ,
          block.tile * Tile::kBlock,
          SK - SQ,
          Scores<SOFT_CAP>::exponent_scale(scale),
          Scores<SOFT_CAP>::tangent_scale(scale),
          {}};
}
template <typename Tile, int D, int SOFT_CAP, typename T>
__device__ __forceinline__ Tile tile_of_queries(TileOfHead block, const T* q, const T* k, const T* v,
                                                const T* d_o, const float* facts, int HQ, int HKV, int SQ,
                                                int SK, float scale, int q_row, int k_row, int v_row) {
  const int key_head = block.head / HQ * HKV + block.head % HQ / (HQ / HKV);
  const Heads<D> of_q{HQ, SQ, q_row};
  return {rows_of(q, of_q, block.head),
          rows_of(d_o, of_q.dense(), block.head),
          rows_of(k, Heads<D>{HKV, SK, k_row}, key_head),
          rows_of(v, Heads<D>{HKV, SK, v_row}, key_head),
          0,
          0,
          1,
          reinterpret_cast<const QueryFacts*>(facts) + static_cast<long long>(block.head) * SQ,
          SQ,
          block.tile * Tile::kBlock,
          SK - SQ,
          Scores<SOFT_CAP>::exponent_scale(scale),
          Scores<SOFT_CAP>::tangent_scale(scale),
          {}};
}

template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int BLOCK, int COLUMNS, int PART>
using KeysTile = GradientTile<T, D, Window<LEFT, CAUSAL != 0 ? 1 : RIGHT>, Scores<SOFT_CAP>, Dropout<false>,
                              false, true, kGradientsOf<D, PART>, BLOCK, COLUMNS>;
template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int BLOCK, int COLUMNS>
using QueriesTile = GradientTile<T, D, Window<LEFT, CAUSAL != 0 ? 1 : RIGHT>, Scores<SOFT_CAP>,
                                 Dropout<false>, false, false, Gradients::kOfRows, BLOCK, COLUMNS>;

template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int ENGINE, int KEY_BLOCK,
          int KEY_COLUMNS, int KEY_STAGES, int PART>
__global__ void __launch_bounds__(kThreadsOf<ENGINE, KEY_BLOCK>, 1)
    flash_attention_backward_keys(const T* q, const T* k, const T* v, const T* d_o, const float* facts, T* dk,
                                  T* dv, int HQ, int HKV, int SQ, int SK, float scale, int q_row, int k_row,
                                  int v_row) {
  if constexpr (ENGINE == kMma) {
    using Tile = KeysTile<T, D, CAUSAL, LEFT, RIGHT, SOFT_CAP, KEY_BLOCK, KEY_COLUMNS, PART>;
    const TileOfHead block = tile_of_block<false>((SK + KEY_BLOCK - 1) / KEY_BLOCK, kHeadsTogether<CAUSAL>);
    const Tile tile = tile_of_keys<Tile, D, SOFT_CAP>(block, q, k, v, d_o, facts, HQ, HKV, SQ, SK, scale,
                                                      q_row, k_row, v_row);
    compute<ENGINE, KEY_STAGES>(tile, rows_of(dk, Heads<D>{HKV, SK, k_row}.dense(), block.head),
                                rows_of(dv, Heads<D>{HKV, SK, v_row}.dense(), block.head), scale);
  }
}

template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int ENGINE, int QUERY_BLOCK,
          int QUERY_COLUMNS, int QUERY_STAGES>
__global__ void __launch_bounds__(kThreadsOf<ENGINE, QUERY_BLOCK>, 1)
    flash_attention_backward_queries(const T* q, const T* k, const T* v, const T* d_o, const float* facts,
                                     T* dq, int HQ, int HKV, int SQ, int SK, float scale, int q_row,
                                     int k_row, int v_row) {
  if constexpr (ENGINE == kMma) {
    using Tile = QueriesTile<T, D, CAUSAL, LEFT, RIGHT, SOFT_CAP, QUERY_BLOCK, QUERY_COLUMNS>;
    const TileOfHead block =
        tile_of_block<CAUSAL != 0>((SQ + QUERY_BLOCK - 1) / QUERY_BLOCK, kHeadsTogether<CAUSAL>);
    const Tile tile = tile_of_queries<Tile, D, SOFT_CAP>(block, q, k, v, d_o, facts, HQ, HKV, SQ, SK, scale,
                                                         q_row, k_row, v_row);
    compute<ENGINE, QUERY_STAGES>(tile, rows_of(dq, Heads<D>{HQ, SQ, q_row}.dense(), block.head),
                                  HeadRows<T>{}, scale);
  }
}

// The same by wgmma, with tensor maps for the operands' strides. dO has the order of Q.
template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int ENGINE, int KEY_BLOCK,
          int KEY_COLUMNS, int KEY_STAGES, int PART>
__global__ void __launch_bounds__(kThreadsOf<ENGINE, KEY_BLOCK>, 1)
    flash_attention_backward_keys_tma(const __grid_constant__ TensorMap q,
                                      const __grid_constant__ TensorMap k,
                                      const __grid_constant__ TensorMap v,
                                      const __grid_constant__ TensorMap d_o, const float* facts, T* dk, T* dv,
                                      int HQ, int HKV, int SQ, int SK, float scale, int k_row, int v_row) {
  if constexpr (ENGINE == kWgmma) {
    using Tile = KeysTile<T, D, CAUSAL, LEFT, RIGHT, SOFT_CAP, KEY_BLOCK, KEY_COLUMNS, PART>;
    constexpr const T* kNone = nullptr;
    const TileOfHead block = tile_of_block<false>((SK + KEY_BLOCK - 1) / KEY_BLOCK, kHeadsTogether<CAUSAL>);
    const Tile tile = tile_of_keys<Tile, D, SOFT_CAP>(block, kNone, kNone, kNone, kNone, facts, HQ, HKV, SQ,
                                                      SK, scale, 0, 0, 0);
    const int batch = block.head / HKV, head = block.head % HKV, query_head = head * (HQ / HKV);
    const GradientRows<BoxedRows> source{
        {k, head, batch}, {v, head, batch}, {q, query_head, batch}, {d_o, query_head, batch}};
    WgmmaGradients<Tile, BoxedRows, KEY_STAGES>(tile, source, shared_memory())
        .run(rows_of(dk, Heads<D>{HKV, SK, k_row}.dense(), block.head),
             rows_of(dv, Heads<D>{HKV, SK, v_row}.dense(), block.head), scale);
  }
}

template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int ENGINE, int QUERY_BLOCK,
          int QUERY_COLUMNS, int QUERY_STAGES>
__global__ void __launch_bounds__(kThreadsOf<ENGINE, QUERY_BLOCK>, 1)
    flash_attention_backward_queries_tma(const __grid_constant__ TensorMap q,
                                         const __grid_constant__ TensorMap k,
                                         const __grid_constant__ TensorMap v,
                                         const __grid_constant__ TensorMap d_o, const float* facts, T* dq,
                                         int HQ, int HKV, int SQ, int SK, float scale, int q_row) {
  if constexpr (ENGINE == kWgmma) {
    using Tile = QueriesTile<T, D, CAUSAL, LEFT, RIGHT, SOFT_CAP, QUERY_BLOCK, QUERY_COLUMNS>;
    constexpr const T* kNone = nullptr;
    const TileOfHead block =
        tile_of_block<CAUSAL != 0>((SQ + QUERY_BLOCK - 1) / QUERY_BLOCK, kHeadsTogether<CAUSAL>);
    const Tile tile = tile_of_queries<Tile, D, SOFT_CAP>(block, kNone, kNone, kNone, kNone, facts, HQ, HKV,
                                                         SQ, SK, scale, 0, 0, 0);
    const int batch = block.head / HQ, head = block.head % HQ, key_head = head / (HQ / HKV);
    const GradientRows<BoxedRows> source{
        {q, head, batch}, {d_o, head, batch}, {k, key_head, batch}, {v, key_head, batch}};
    WgmmaGradients<Tile, BoxedRows, QUERY_STAGES>(tile, source, shared_memory())
        .run(rows_of(dq, Heads<D>{HQ, SQ, q_row}.dense(), block.head), HeadRows<T>{}, scale);
  }
}

// The same of packed sequences (flash_attention_packed_forward); gradients of gaps are 0. The facts are those of
// flash_attention_backward_facts, of one batch.
//
// Grids: (SK / KEY_BLOCK + N + GAPS) * HKV; (SQ / QUERY_BLOCK + N + GAPS) * HQ.
template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int DROPOUT, int GAPS, int ENGINE,
          int KEY_BLOCK, int KEY_COLUMNS, int KEY_STAGES, int PART>
__global__ void __launch_bounds__(kThreadsOf<ENGINE, KEY_BLOCK>, 1)
    flash_attention_packed_backward_keys(const T* q, const T* k, const T* v, const T* d_o, const float* facts,
                                         T* dk, T* dv, const int* q_bounds, const int* k_bounds,
                                         const int* q_lengths, const int* k_lengths, const long long* dropout,
                                         int N, int HQ, int HKV, int SQ, int SK, float scale, int q_row,
                                         int k_row, int v_row) {
  using Seen = Window<LEFT, CAUSAL != 0 ? 1 : RIGHT>;
  using Drop = Dropout<DROPOUT != 0>;
  using Part = Sequences<GAPS != 0>;
  using Tile = GradientTile<T, D, Seen, Scores<SOFT_CAP>, Drop, GAPS != 0, true, kGradientsOf<D, PART>,
                            KEY_BLOCK, KEY_COLUMNS>;
  const bool own = k_bounds == nullptr;  // sequences attend to themselves
  const Part of_queries{q_bounds, q_lengths, N},
      of_keys{own ? q_bounds : k_bounds, own ? q_lengths : k_lengths, N};
  const TileOfHead block =
      tile_of_block<false>(Part::template tiles<KEY_BLOCK>(SK, N), kHeadsTogether<CAUSAL>);
  const int head = block.head, group = HQ / HKV, first_query_head = head * group;
  const Sequence keys = of_keys.template of_tile<KEY_BLOCK>(block.tile);
  if (keys.tile * KEY_BLOCK >= keys.owned) {
    return;
  }
  const Sequence queries = own ? keys : of_queries.get(keys.number);
  const Heads<D> of_q{HQ, SQ, q_row}, of_k{HKV, SK, k_row}, of_v{HKV, SK, v_row};
  const Tile tile = {rows_of(k, of_k, head, keys.begin, keys.rows),
                     rows_of(v, of_v, head, keys.begin, keys.rows),
                     rows_of(q, of_q, first_query_head, queries.begin, queries.rows),
                     rows_of(d_o, of_q.dense(), first_query_head, queries.begin, queries.rows),
                     of_q.step(),
                     of_q.dense().step(),
                     group,
                     reinterpret_cast<const QueryFacts*>(facts) +
                         static_cast<long long>(first_query_head) * SQ + queries.begin,
                     SQ,
                     keys.tile * KEY_BLOCK,
                     keys.rows - queries.rows,
                     Scores<SOFT_CAP>::exponent_scale(scale),
                     Scores<SOFT_CAP>::tangent_scale(scale),
                     Drop::of(dropout, first_query_head, keys.number)};
  compute<ENGINE, KEY_STAGES>(tile, rows_of(dk, of_k.dense(), head, keys.begin, keys.owned),
                              rows_of(dv, of_v.dense(), head, keys.begin, keys.owned), scale);
}

template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int DROPOUT, int GAPS, int ENGINE,
          int QUERY_BLOCK, int QUERY_COLUMNS, int QUERY_STAGES>
__global__ void __launch_bounds__(kThreadsOf<ENGINE, QUERY_BLOCK>, 1)
    flash_attention_packed_backward_queries(const T* q, const T* k, const T* v, const T* d_o,
                                            const float* facts, T* dq, const int* q_bounds,
                                            const int* k_bounds, const int* q_lengths, const int* k_lengths,
                                            const long long* dropout, int N, int HQ, int HKV, int SQ, int SK,
                                            float scale, int q_row, int k_row, int v_row) {
  using Seen = Window<LEFT, CAUSAL != 0 ? 1 : RIGHT>;
  using Drop = Dropout<DROPOUT != 0>;
  using Part = Sequences<GAPS != 0>;
  using Tile = GradientTile<T, D, Seen, Scores<SOFT_CAP>, Drop, GAPS != 0, false, Gradients::kOfRows,
                            QUERY_BLOCK, QUERY_COLUMNS>;
  const Part of_queries{q_bounds, q_lengths, N}, of_keys{k_bounds, k_lengths, N};
  const TileOfHead block =
      tile_of_block<CAUSAL != 0>(Part::template tiles<QUERY_BLOCK>(SQ, N), kHeadsTogether<CAUSAL>);
  const int head = block.head, key_head = head / (HQ / HKV);
  const Sequence queries = of_queries.template of_tile<QUERY_BLOCK>(block.tile);
  if (queries.tile * QUERY_BLOCK >= queries.owned) {
    return;
  }
  const Sequence keys = k_bounds != nullptr ? of_keys.get(queries.number) : queries;
  const Heads<D> of_q{HQ, SQ, q_row};
  const Tile tile = {
      rows_of(q, of_q, head, queries.begin, queries.rows),
      rows_of(d_o, of_q.dense(), head, queries.begin, queries.rows),
      rows_of(k, Heads<D>{HKV, SK, k_row}, key_head, keys.begin, keys.rows),
      rows_of(v, Heads<D>{HKV, SK, v_row}, key_head, keys.begin, keys.rows),
      0,
      0,
      1,
      reinterpret_cast<const QueryFacts*>(facts) + static_cast<long long>(head) * SQ + queries.begin,
      SQ,
      queries.tile * QUERY_BLOCK,
      keys.rows - queries.rows,
      Scores<SOFT_CAP>::exponent_scale(scale),
      Scores<SOFT_CAP>::tangent_scale(scale),
      Drop::of(dropout, head, queries.number)};
  compute<ENGINE, QUERY_STAGES>(tile, rows_of(dq, of_q.dense(), head, queries.begin, queries.owned),
                                HeadRows<T>{}, scale);
}
