// dQ, dK and dV of flash_attention_forward from Q, K, V, O, L and dO; weights are computed anew.
//
// Layouts, scale and CAUSAL are the forward's. O, dO and dQ are dense and have the order of Q, dK that of K, dV that of
// V. dK and dV are summed over the heads of queries
// that share a head of keys. Three launches: what is known of each query, dK and dV, dQ. Scores are computed twice,
// and no sum is made by two blocks: the bits are the same every time. A launch of dK and dV that computes them once and
// adds dQ to float32 sums by atomics was tried on an H200, and took 1.06 to 1.20 times as long.
//
// ENGINE    0 mma.sync, 1 wgmma (sm_90a)
// KEY_BLOCK, KEY_COLUMNS, KEY_STAGES        keys of a block of flash_attention_backward_keys, queries that it takes
//                                           at a time, and buffers of shared memory that they go through
// QUERY_BLOCK, QUERY_COLUMNS, QUERY_STAGES  queries of a block of flash_attention_backward_queries, and so on
//
// Grids: cdiv(B * HQ * SQ, 16); cdiv(SK, KEY_BLOCK) * B * HKV; cdiv(SQ, QUERY_BLOCK) * B * HQ. Shared memory:
// 2 * (BLOCK + STAGES * COLUMNS) rows, and 1024 bytes for alignment; for wgmma 16 for each stage, and of keys
// 8 * KEY_COLUMNS more.
#include "mma_gradients.cuh"
#include "vector_io.cuh"
#include "wgmma_gradients.cuh"

enum Engine { kMma = 0, kWgmma = 1 };

// 16 threads per query: `facts` for all of them.
template <typename T, int D>
__global__ void __launch_bounds__(256)
    flash_attention_backward_facts(const T* o, const T* d_o, const float* lse, float* facts,
                                   long long queries, int HQ, int SQ, int q_row) {
  const long long query = static_cast<long long>(blockIdx.x) * 16 + threadIdx.x / 16;
  const int lane = int(threadIdx.x) % 16;
  float sum = 0.0f;
  if (query < queries && lane * 8 < D) {
    const Heads<D> heads = Heads<D>{HQ, SQ, q_row}.dense();
    const long long at = heads.begin(int(query / SQ)) + query % SQ * heads.pitch() + lane * 8;
    Vector<T, 8> output, slope;
    load_constant(output, o + at);
    load_constant(slope, d_o + at);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      sum = fmaf(output.element(i), slope.element(i), sum);
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

// Threads of a block: wgmma takes four warps for 64 rows, and four that copy.
template <int ENGINE, int BLOCK>
constexpr int kThreadsOf = BLOCK * 2 + (ENGINE == kWgmma ? 128 : 0);

template <int ENGINE, int STAGES, typename Tile, typename T>
__device__ __forceinline__ void compute(const Tile& tile, const HeadRows<T>& of_rows,
                                        const HeadRows<T>& of_mates, float slope_scale) {
  extern __shared__ __align__(1024) unsigned char dynamic[];
  unsigned char* shared = dynamic + (0u - shared_address(dynamic)) % 1024;
  if constexpr (ENGINE == kMma) {
    MmaGradients<Tile, STAGES>(tile, shared).run(of_rows, of_mates, slope_scale);
  } else {
    WgmmaGradients<Tile, STAGES>(tile, shared).run(of_rows, of_mates, slope_scale);
  }
}

template <typename T, int D, int CAUSAL, int ENGINE, int KEY_BLOCK, int KEY_COLUMNS, int KEY_STAGES>
__global__ void __launch_bounds__(kThreadsOf<ENGINE, KEY_BLOCK>, 1)
    flash_attention_backward_keys(const T* q, const T* k, const T* v, const T* d_o, const float* facts, T* dk,
                                  T* dv, int HQ, int HKV, int SQ, int SK, float scale, int q_row, int k_row,
                                  int v_row) {
  const int blocks = (SK + KEY_BLOCK - 1) / KEY_BLOCK;
  const int head = int(blockIdx.x) / blocks, group = HQ / HKV;
  const int first_query_head = head * group;
  const Heads<D> of_q{HQ, SQ, q_row}, of_k{HKV, SK, k_row}, of_v{HKV, SK, v_row};
  const GradientTile<T, D, CAUSAL != 0, true, KEY_BLOCK, KEY_COLUMNS> tile = {
      rows_of(k, of_k, head),
      rows_of(v, of_v, head),
      rows_of(q, of_q, first_query_head),
      rows_of(d_o, of_q.dense(), first_query_head),
      of_q.step(),
      of_q.dense().step(),
      group,
      reinterpret_cast<const QueryFacts*>(facts) + static_cast<long long>(first_query_head) * SQ,
      int(blockIdx.x) % blocks * KEY_BLOCK,
      SK - SQ,
      scale * 1.44269504088896f};
  compute<ENGINE, KEY_STAGES>(tile, rows_of(dk, of_k.dense(), head), rows_of(dv, of_v.dense(), head), scale);
}

template <typename T, int D, int CAUSAL, int ENGINE, int QUERY_BLOCK, int QUERY_COLUMNS, int QUERY_STAGES>
__global__ void __launch_bounds__(kThreadsOf<ENGINE, QUERY_BLOCK>, 1)
    flash_attention_backward_queries(const T* q, const T* k, const T* v, const T* d_o, const float* facts,
                                     T* dq, int HQ, int HKV, int SQ, int SK, float scale, int q_row,
                                     int k_row, int v_row) {
  const int blocks = (SQ + QUERY_BLOCK - 1) / QUERY_BLOCK;
  const int head = int(blockIdx.x) / blocks, block = int(blockIdx.x) % blocks;
  const int key_head = head / HQ * HKV + head % HQ / (HQ / HKV);
  const Heads<D> of_q{HQ, SQ, q_row};
  const GradientTile<T, D, CAUSAL != 0, false, QUERY_BLOCK, QUERY_COLUMNS> tile = {
      rows_of(q, of_q, head),
      rows_of(d_o, of_q.dense(), head),
      rows_of(k, Heads<D>{HKV, SK, k_row}, key_head),
      rows_of(v, Heads<D>{HKV, SK, v_row}, key_head),
      0,
      0,
      1,
      reinterpret_cast<const QueryFacts*>(facts) + static_cast<long long>(head) * SQ,
      (CAUSAL ? blocks - 1 - block : block) * QUERY_BLOCK,  // those with the most keys first
      SK - SQ,
      scale * 1.44269504088896f};
  compute<ENGINE, QUERY_STAGES>(tile, rows_of(dq, of_q.dense(), head), HeadRows<T>{}, scale);
}
