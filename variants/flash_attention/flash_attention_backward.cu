// dQ, dK and dV of flash_attention_forward from Q, K, V, O, L and dO; weights are computed anew.
//
// Layouts, scale and CAUSAL are the forward's; dO is [B, HQ, SQ, D]. dK and dV are summed over the heads of queries
// that share a head of keys. Three launches: what is known of each query, dK and dV, dQ. Scores are computed twice,
// and no sum is made by two blocks: the bits are the same every time. A launch of dK and dV that computes them once and
// adds dQ to float32 sums by atomics was tried on an H200, and took 1.06 to 1.20 times as long.
//
// ENGINE    0 mma.sync, 1 wgmma (sm_90a)
// KEY_BLOCK, KEY_COLUMNS, KEY_STAGES        keys of a block of flash_attention_backward_keys, queries that it takes
//                                           at a time, and buffers of shared memory that they go through
// QUERY_BLOCK, QUERY_COLUMNS, QUERY_STAGES  queries of a block of flash_attention_backward_queries, and so on
//
// Grids: cdiv(B * HQ * SQ, 8); cdiv(SK, KEY_BLOCK) * B * HKV; cdiv(SQ, QUERY_BLOCK) * B * HQ. Shared memory:
// 2 * (BLOCK + STAGES * COLUMNS) * D elements, and 1024 bytes for alignment; for wgmma 16 for each stage, and of keys
// 8 * KEY_COLUMNS more.
#include "mma_gradients.cuh"
#include "vector_io.cuh"
#include "wgmma_gradients.cuh"

enum Engine { kMma = 0, kWgmma = 1 };

// One warp a query: `facts` for all of them.
template <typename T, int D>
__global__ void __launch_bounds__(256)
    flash_attention_backward_facts(const T* o, const T* d_o, const float* lse, float* facts,
                                   long long queries) {
  const long long query = static_cast<long long>(blockIdx.x) * 8 + threadIdx.x / 32;
  if (query >= queries) {
    return;
  }
  const int lane = threadIdx.x % 32;
  Vector<T, D / 32> output, slope;
  load_constant(output, o + query * D + lane * (D / 32));
  load_constant(slope, d_o + query * D + lane * (D / 32));
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < D / 32; ++i) {
    sum = fmaf(output.element(i), slope.element(i), sum);
  }
#pragma unroll
  for (int other = 16; other > 0; other /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, other);
  }
  if (lane == 0) {
    const float logarithm = lse[query];
    facts[query * 2] = logarithm == minus_infinity() ? -minus_infinity() : logarithm * 1.44269504088896f;
    facts[query * 2 + 1] = sum;
  }
}

// Threads of a block: wgmma takes four warps for 64 rows, and four that copy.
template <int ENGINE, int BLOCK>
constexpr int kThreadsOf = BLOCK * 2 + (ENGINE == kWgmma ? 128 : 0);

template <int ENGINE, int STAGES, typename Tile, typename T>
__device__ __forceinline__ void compute(const Tile& tile, T* of_rows, T* of_mates, float slope_scale) {
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
                                  T* dv, int HQ, int HKV, int SQ, int SK, float scale) {
  const int blocks = (SK + KEY_BLOCK - 1) / KEY_BLOCK;
  const long long head = blockIdx.x / blocks, group = HQ / HKV;
  const long long first_key = head * SK, first_query = head * group * SQ;
  const GradientTile<T, D, CAUSAL != 0, true, KEY_BLOCK, KEY_COLUMNS> tile = {
      {k + first_key * D, SK, D},
      {v + first_key * D, SK, D},
      {q + first_query * D, SQ, D},
      {d_o + first_query * D, SQ, D},
      int(group),
      reinterpret_cast<const QueryFacts*>(facts) + first_query,
      int(blockIdx.x) % blocks * KEY_BLOCK,
      SK - SQ,
      scale * 1.44269504088896f};
  compute<ENGINE, KEY_STAGES>(tile, dk + first_key * D, dv + first_key * D, scale);
}

template <typename T, int D, int CAUSAL, int ENGINE, int QUERY_BLOCK, int QUERY_COLUMNS, int QUERY_STAGES>
__global__ void __launch_bounds__(kThreadsOf<ENGINE, QUERY_BLOCK>, 1)
    flash_attention_backward_queries(const T* q, const T* k, const T* v, const T* d_o, const float* facts,
                                     T* dq, int HQ, int HKV, int SQ, int SK, float scale) {
  const int blocks = (SQ + QUERY_BLOCK - 1) / QUERY_BLOCK;
  const int head = int(blockIdx.x) / blocks, block = int(blockIdx.x) % blocks;
  const long long first_query = static_cast<long long>(head) * SQ;
  const long long first_key = static_cast<long long>(head / HQ * HKV + head % HQ / (HQ / HKV)) * SK;
  const GradientTile<T, D, CAUSAL != 0, false, QUERY_BLOCK, QUERY_COLUMNS> tile = {
      {q + first_query * D, SQ, D},
      {d_o + first_query * D, SQ, D},
      {k + first_key * D, SK, D},
      {v + first_key * D, SK, D},
      1,
      reinterpret_cast<const QueryFacts*>(facts) + first_query,
      (CAUSAL ? blocks - 1 - block : block) * QUERY_BLOCK,  // those with the most keys first
      SK - SQ,
      scale * 1.44269504088896f};
  compute<ENGINE, QUERY_STAGES>(tile, dq + first_query * D, static_cast<T*>(nullptr), scale);
}
