// O = softmax(scale * Q * K^T) * V for each head, and L, the natural logarithm of each row's summed exponentials.
//
// Q and O are [B, HQ, SQ, D], K and V [B, HKV, SK, D], L is [B, HQ, SQ] in float32; all are dense and aligned to
// 16 bytes. With a row stride, Q, K or V is [B, SQ or SK, heads, D] (heads.cuh), and O is a dense [B, SQ, HQ, D] if Q
// has one. HQ is a multiple of HKV: HQ / HKV consecutive heads of queries share a head of keys. scale is positive.
// D is a multiple of 16 up to 256; in shared memory a row has cdiv(D, 64) * 64 elements.
// CAUSAL: query i sees key j where j <= i + SK - SQ, so that the last query sees all keys; torch's
// is_causal is the same where SQ == SK. LEFT != 0: where j > i + SK - SQ - LEFT. RIGHT != 0: where
// j < i + SK - SQ + RIGHT. A query that sees no key has O = 0 and L = -infinity.
// SOFT_CAP c != 0: scores are c * tanh(scale * Q * K^T / c).
//
// Scores, weights and sums are float32; weights are rounded to T before they are multiplied with V.
//
// ENGINE    0 mma.sync, 1 wgmma (sm_90a) with copies by TMA, or, of packed sequences, by cp.async
// BLOCK_M, BLOCK_N  queries of a block, and keys that it goes through at a time
// WARPS     of a block; wgmma takes four for 64 queries, and four that copy
// STAGES    buffers of shared memory for tiles of K, and as many for tiles of V
// QUERIES_IN_REGISTERS  mma.sync reads Q from shared memory once, not with each tile of K
// TAKE_TURNS  the warpgroups of wgmma start their products one after the other
// PERSISTENT  wgmma with TMA: a block for each multiprocessor, which goes from tile to tile of queries
// HEADS     heads whose blocks run side by side, for the L2 cache; of those, blocks with more keys come first. Given
//           as an argument: nothing is compiled for it
//
// Grid (cdiv(SQ, BLOCK_M) * B * HQ), and of PERSISTENT blocks not more than there are multiprocessors. Shared memory:
// BLOCK_M + 2 * STAGES * BLOCK_N rows, BLOCK_M more if PERSISTENT, 1024 bytes for alignment and 128 for barriers.
#include "engines.cuh"

template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int ENGINE, int BLOCK_M,
          int BLOCK_N, int WARPS, int STAGES, int QUERIES_IN_REGISTERS, int TAKE_TURNS>
__global__ void __launch_bounds__(WARPS * 32, 1)
    flash_attention_forward(const T* q, const T* k, const T* v, T* o, float* lse, int HQ, int HKV, int SQ,
                            int SK, float scale, int q_row, int k_row, int v_row, int heads_together) {
  if constexpr (ENGINE == kMma) {
    using Seen = Window<LEFT, CAUSAL != 0 ? 1 : RIGHT>;
    using Tile = QueryTile<T, D, Seen, Scores<SOFT_CAP>, Dropout<false>, false, BLOCK_M, BLOCK_N>;
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
                       Scores<SOFT_CAP>::exponent_scale(scale),
                       Scores<SOFT_CAP>::tangent_scale(scale),
                       {}};
    attend<ENGINE, WARPS, STAGES, QUERIES_IN_REGISTERS, TAKE_TURNS>(tile);
  }
}

// The tiles of queries of the blocks of wgmma, and where their operands are. A block has one item, or if it is
// PERSISTENT, each gridDim.x-th one. With a causal mask, two such items in a row are the i-th longest and the i-th
// shortest tile of a head, so that all blocks have the same work.
template <typename T, int D, bool CAUSAL, bool PERSISTENT, typename Tile, typename Scale>
struct TilesOfHeads {
  static constexpr bool kPairs = CAUSAL && PERSISTENT;

  const TensorMap &q, &k, &v;
  T* o;
  float* lse;
  int HQ, HKV, SQ, SK;
  float scale;
  int q_row, heads_together, heads;  // heads of all batches
  int tiles = (SQ + Tile::kBlockM - 1) / Tile::kBlockM, pairs = (tiles + 1) / 2;
  int items =
      kPairs ? (pairs * heads + int(gridDim.x) - 1) / int(gridDim.x) * int(gridDim.x) * 2 : tiles * heads;

  __device__ __forceinline__ TileOfHead at(int item) const {
    if constexpr (kPairs) {
      TileOfHead found = tile_of_block<false>(pairs, heads_together, pair_of(item), heads);
      if (!second_of_pair(item)) {
        found.tile = tiles - 1 - found.tile;
      }
      return found;
    } else {
      return tile_of_block<CAUSAL>(tiles, heads_together, item, heads);
    }
  }
  // Whether there is a tile: not behind the last pair, and that in the middle once.
  __device__ __forceinline__ bool has(int item) const {
    if constexpr (kPairs) {
      return pair_of(item) < pairs * heads && !(second_of_pair(item) && at(item).tile * 2 == tiles - 1);
    } else {
      return true;
    }
  }
  __device__ __forceinline__ Tile tile(int item) const {
    const TileOfHead block = at(item);
    return {{nullptr, SQ, D},
            {nullptr, SK, D},
            {nullptr, SK, D},
            rows_of(o, Heads<D>{HQ, SQ, q_row}.dense(), block.head),
            lse + static_cast<long long>(block.head) * SQ,
            block.tile * Tile::kBlockM,
            SK - SQ,
            Scale::exponent_scale(scale),
            Scale::tangent_scale(scale),
            {}};
  }
  __device__ __forceinline__ BoxedRows source(int item) const {
    const int of_all = at(item).head, batch = of_all / HQ, head = of_all % HQ,
              shared_head = head / (HQ / HKV);
    return {{q, head, batch}, {k, shared_head, batch}, {v, shared_head, batch}};
  }

 private:
  static __device__ __forceinline__ bool second_of_pair(int item) { return item / int(gridDim.x) % 2 != 0; }
  static __device__ __forceinline__ int pair_of(int item) {
    const int blocks = int(gridDim.x);
    return item / blocks / 2 * blocks + item % blocks;
  }
};

// The same by wgmma, with tensor maps for the operands' strides; `heads` are those of all batches.
template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int ENGINE, int BLOCK_M,
          int BLOCK_N, int WARPS, int STAGES, int TAKE_TURNS, int PERSISTENT>
__global__ void __launch_bounds__(WARPS * 32, 1)
    flash_attention_forward_tma(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                                const __grid_constant__ TensorMap v, T* o, float* lse, int HQ, int HKV,
                                int SQ, int SK, float scale, int q_row, int heads_together, int heads) {
  if constexpr (ENGINE == kWgmma) {
    using Seen = Window<LEFT, CAUSAL != 0 ? 1 : RIGHT>;
    using Tile = QueryTile<T, D, Seen, Scores<SOFT_CAP>, Dropout<false>, false, BLOCK_M, BLOCK_N>;
    using Attention = WgmmaAttention<Tile, BoxedRows, STAGES, TAKE_TURNS != 0, PERSISTENT != 0>;
    const TilesOfHeads<T, D, CAUSAL != 0, PERSISTENT != 0, Tile, Scores<SOFT_CAP>> work = {
        q, k, v, o, lse, HQ, HKV, SQ, SK, scale, q_row, heads_together, heads};
    if constexpr (PERSISTENT != 0) {
      Attention::run_all(work, shared_memory());
    } else {
      const Tile tile = work.tile(blockIdx.x);
      Attention(tile, work.source(blockIdx.x), shared_memory()).run();
    }
  }
}

// The same of packed sequences (sequences.cuh): Q and O are [1, HQ, SQ, D], SQ rows of all sequences, K and V
// [1, HKV, SK, D], or with a row stride [SQ, HQ, D] and so on; lse is [HQ, SQ]. Sequences attend to themselves, or with
// k_bounds to the keys of the same number. Rows of gaps are 0, and -infinity in lse.
// DROPOUT: weights are dropped and scaled (dropout.cuh); dropout has the seed and how many of 65536 are kept.
//
// Grid ((SQ / BLOCK_M + N + GAPS) * HQ).
template <typename T, int D, int CAUSAL, int LEFT, int RIGHT, int SOFT_CAP, int DROPOUT, int GAPS, int ENGINE,
          int BLOCK_M, int BLOCK_N, int WARPS, int STAGES, int QUERIES_IN_REGISTERS, int TAKE_TURNS>
__global__ void __launch_bounds__(WARPS * 32, 1)
    flash_attention_packed_forward(const T* q, const T* k, const T* v, T* o, float* lse, const int* q_bounds,
                                   const int* k_bounds, const int* q_lengths, const int* k_lengths,
                                   const long long* dropout, int N, int HQ, int HKV, int SQ, int SK,
                                   float scale, int q_row, int k_row, int v_row, int heads_together) {
  using Seen = Window<LEFT, CAUSAL != 0 ? 1 : RIGHT>;
  using Drop = Dropout<DROPOUT != 0>;
  using Part = Sequences<GAPS != 0>;
  using Tile = QueryTile<T, D, Seen, Scores<SOFT_CAP>, Drop, GAPS != 0, BLOCK_M, BLOCK_N>;
  const TileOfHead block = tile_of_block<CAUSAL != 0>(Part::template tiles<BLOCK_M>(SQ, N), heads_together);
  const Part of_queries{q_bounds, q_lengths, N}, of_keys{k_bounds, k_lengths, N};
  const Sequence queries = of_queries.template of_tile<BLOCK_M>(block.tile);
  if (queries.tile * BLOCK_M >= queries.owned) {
    return;
  }
  const Sequence keys = k_bounds != nullptr ? of_keys.get(queries.number) : queries;
  const int key_head = block.head / (HQ / HKV);
  const Heads<D> heads{HQ, SQ, q_row};
  const Tile tile = {rows_of(q, heads, block.head, queries.begin, queries.rows),
                     rows_of(k, Heads<D>{HKV, SK, k_row}, key_head, keys.begin, keys.rows),
                     rows_of(v, Heads<D>{HKV, SK, v_row}, key_head, keys.begin, keys.rows),
                     rows_of(o, heads.dense(), block.head, queries.begin, queries.owned),
                     lse + static_cast<long long>(block.head) * SQ + queries.begin,
                     queries.tile * BLOCK_M,
                     keys.rows - queries.rows,
                     Scores<SOFT_CAP>::exponent_scale(scale),
                     Scores<SOFT_CAP>::tangent_scale(scale),
                     Drop::of(dropout, block.head, queries.number)};
  attend<ENGINE, WARPS, STAGES, QUERIES_IN_REGISTERS, TAKE_TURNS>(tile);
}
