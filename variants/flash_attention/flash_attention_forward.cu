// O = softmax(scale * Q * K^T) * V for each head, and L, the natural logarithm of each row's summed exponentials.
//
// Q and O are [B, HQ, SQ, D], K and V [B, HKV, SK, D], L is [B, HQ, SQ] in float32; all are dense and aligned to
// 16 bytes. With a row stride, Q, K or V is [B, SQ or SK, heads, D] (heads.cuh), and O is a dense [B, SQ, HQ, D] if Q
// has one. HQ is a multiple of HKV: HQ / HKV consecutive heads of queries share a head of keys. scale is positive.
// D is a multiple of 16 up to 128; in shared memory a row has cdiv(D, 64) * 64 elements.
// CAUSAL: query i sees key j where j <= i + SK - SQ, so that the last query sees all keys; torch's
// is_causal is the same where SQ == SK. A query that sees no key has O = 0 and L = -infinity.
//
// Scores, weights and sums are float32; weights are rounded to T before they are multiplied with V.
//
// ENGINE    0 mma.sync, 1 wgmma (sm_90a)
// BLOCK_M, BLOCK_N  queries of a block, and keys that it goes through at a time
// WARPS     of a block; wgmma takes four for 64 queries, and four that copy
// STAGES    buffers of shared memory for tiles of K, and as many for tiles of V
// QUERIES_IN_REGISTERS  mma.sync reads Q from shared memory once, not with each tile of K
// TAKE_TURNS  the warpgroups of wgmma start their products one after the other
// HEADS     heads whose blocks run side by side, for the L2 cache; of those, blocks with more keys come first. Given
//           as an argument: nothing is compiled for it
//
// Grid (cdiv(SQ, BLOCK_M) * B * HQ). Shared memory: BLOCK_M + 2 * STAGES * BLOCK_N rows, 1024 bytes for alignment and
// 128 for barriers.
#include "mma_attention.cuh"
#include "wgmma_attention.cuh"

enum Engine { kMma = 0, kWgmma = 1 };

struct TileOfHead {
  int head, tile;
};

template <bool CAUSAL>
__device__ __forceinline__ TileOfHead tile_of_block(int tiles, int heads_together) {
  const int block = blockIdx.x, heads = int(gridDim.x) / tiles;
  const int first = block / (heads_together * tiles) * heads_together;
  const int together = heads - first < heads_together ? heads - first : heads_together;
  const int within = block % (heads_together * tiles);
  const int tile = within / together;
  return {first + within % together, CAUSAL ? tiles - 1 - tile : tile};
}

template <typename T, int D, int CAUSAL, int ENGINE, int BLOCK_M, int BLOCK_N, int WARPS, int STAGES,
          int QUERIES_IN_REGISTERS, int TAKE_TURNS>
__global__ void __launch_bounds__(WARPS * 32, 1)
    flash_attention_forward(const T* q, const T* k, const T* v, T* o, float* lse, int HQ, int HKV, int SQ,
                            int SK, float scale, int q_row, int k_row, int v_row, int heads_together) {
  using Tile = QueryTile<T, D, CAUSAL != 0, BLOCK_M, BLOCK_N>;
  extern __shared__ __align__(1024) unsigned char dynamic[];
  unsigned char* shared = dynamic + (0u - shared_address(dynamic)) % 1024;

  const TileOfHead block = tile_of_block<CAUSAL != 0>((SQ + BLOCK_M - 1) / BLOCK_M, heads_together);
  const int shared_head = block.head / HQ * HKV + block.head % HQ / (HQ / HKV);
  const Heads<D> of_queries{HQ, SQ, q_row};
  const Tile tile = {rows_of(q, of_queries, block.head),
                     rows_of(k, Heads<D>{HKV, SK, k_row}, shared_head),
                     rows_of(v, Heads<D>{HKV, SK, v_row}, shared_head),
                     rows_of(o, of_queries.dense(), block.head),
                     lse + static_cast<long long>(block.head) * SQ,
                     block.tile * BLOCK_M,
                     SK - SQ,
                     scale * 1.44269504088896f};
  if constexpr (ENGINE == kMma) {
    MmaAttention<Tile, WARPS, STAGES, QUERIES_IN_REGISTERS != 0>(tile, shared).run();
  } else {
    static_assert(WARPS == BLOCK_M / 16 + 4, "four warps for 64 queries, and four that copy");
    WgmmaAttention<Tile, STAGES, TAKE_TURNS != 0>(tile, shared).run();
  }
}
