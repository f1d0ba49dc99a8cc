// C = A * B of each row's group: A of M x K, B of E matrices of K x N (or N x K where TRANSPOSE_B is 1), C of M x N
// elements, summed in float32. Group e has the rows from offsets[e - 1] (0 for the first one) up to offsets[e]; rows
// behind the last group's are not written.
//
// ENGINE    0 mma.sync (grouped_mm), 1 wgmma fed by TMA (grouped_mm_tma, sm_90a); both as in matmul.cu
// BLOCK_M, BLOCK_N, STAGES, VECTOR, CLUSTER   as in matmul.cu; the blocks of a cluster share the rows of A
// WARPS_M   ENGINE 0: 2, and 2 along N; ENGINE 1: 8 where two warpgroups share a tile, 4 where they take turns
#include "epilogue.cuh"
#include "groups.cuh"
#include "mma_engine.cuh"
#include "stages.cuh"

constexpr int kGroupedBlockK = 32, kGroupedWarpsN = 2;  // ENGINE 0

template <typename T, int ENGINE, int BLOCK_M, int BLOCK_N, int WARPS_M, int STAGES, int VECTOR,
          int TRANSPOSE_B>
__global__ void __launch_bounds__(WARPS_M* kGroupedWarpsN * 32)
    grouped_mm(const T* a, const T* b, const int* offsets, T* c, int N, int K, int E) {
  if constexpr (ENGINE == 0) {
    using S = Stages<T, BLOCK_M, BLOCK_N, kGroupedBlockK, WARPS_M, kGroupedWarpsN, STAGES, VECTOR, false,
                     TRANSPOSE_B != 0>;
    extern __shared__ __align__(1024) unsigned char dynamic[];
    unsigned char* shared = dynamic + (0u - shared_address(dynamic)) % 1024;
    const int item = blockIdx.x;
    GroupWalk<BLOCK_M> walk(offsets, E, (N + BLOCK_N - 1) / BLOCK_N);
    if (!walk.reach(item)) {
      return;
    }
    const int m = walk.row(item), n = walk.column(item) * BLOCK_N, rows = walk.end - walk.begin;
    const T* of_group = b + static_cast<long long>(walk.group) * N * K;
    const S stages = {Matrix<T>{a + static_cast<long long>(walk.begin) * K, rows, K},
                      TRANSPOSE_B ? Matrix<T>{of_group, N, K} : Matrix<T>{of_group, K, N},
                      m,
                      n,
                      0,
                      (K + kGroupedBlockK - 1) / kGroupedBlockK,
                      shared_address(shared)};
    MmaEngine<S> engine;
    engine.run(stages);
    __syncthreads();  // all have read the last stage
    T* finished = reinterpret_cast<T*>(shared);
    finish<0, kNone, BLOCK_N>(engine, static_cast<const T*>(nullptr), finished, n, N);
    __syncthreads();
    store_finished<BLOCK_M, BLOCK_N, S::kThreads>(finished, c + static_cast<long long>(walk.begin) * N, m, n,
                                                  rows, N);
  }
}

template <typename T, int ENGINE, int BLOCK_M, int BLOCK_N, int WARPS_M, int STAGES, int CLUSTER,
          int TRANSPOSE_B>
__global__ void __launch_bounds__(384, 1) CUBIND_CLUSTER_ALONG_X(CLUSTER)
    grouped_mm_tma(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                   const __grid_constant__ TensorMap c, T* out, const int* offsets, int N, int K, int E) {
  if constexpr (ENGINE == 1) {
    using Tma =
        TmaEngine<T, T, BLOCK_M, BLOCK_N, STAGES, CLUSTER, true, WARPS_M == 4, true, TRANSPOSE_B != 0>;
    extern __shared__ __align__(1024) unsigned char dynamic[];
    const typename Tma::Shared shared = Tma::initialize(dynamic);
    const int steps = (K + Tma::kBlockK - 1) / Tma::kBlockK;
    const int columns = (N + CLUSTER * BLOCK_N - 1) / (CLUSTER * BLOCK_N);
    const GroupedTiles<T, BLOCK_M, BLOCK_N, CLUSTER> tiles = {out, N, TRANSPOSE_B ? N : K,
                                                              GroupWalk<BLOCK_M>(offsets, E, columns)};
    Tma::run(shared, a, b, c, tiles, steps, typename Tma::Sum{steps}, AsItIs{});
  }
}
