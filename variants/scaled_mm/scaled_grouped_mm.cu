// C = (scale_a * A) * (scale_b * B)^T of e4m3 of each row's group: A of M x K, B of E matrices of N x K, C of M x N
// elements, summed in float32. Groups and tiles are those of grouped_mm.cu; rows behind the last group's are not
// written.
//
// SCALES 1, 2, 4: as in scaled_mm.cu, scale_b for each matrix.
//
// ENGINE    0 mma.sync (scaled_grouped_mm), 1 wgmma fed by TMA (scaled_grouped_mm_tma, sm_90a); both as in scaled_mm.cu
// BLOCK_M, BLOCK_N, STAGES, CLUSTER   as in grouped_mm.cu
#include "groups.cuh"
#include "scales.cuh"

// The scales of a group's matrix, from those of the first one.
template <int SCALES>
__device__ __forceinline__ Scales<SCALES> of_group(Scales<SCALES> scales, int group) {
  const int blocks =
      (scales.N + kScaledDepth - 1) / kScaledDepth * ((scales.K + kScaledDepth - 1) / kScaledDepth);
  scales.b += static_cast<long long>(group) * (kScaleOfBlocks<SCALES> ? blocks : scales.N);
  return scales;
}

template <typename T, int ENGINE, int BLOCK_M, int BLOCK_N, int STAGES, int SCALES>
__global__ void __launch_bounds__(256)
    scaled_grouped_mm(const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, const float* scale_a,
                      const float* scale_b, const int* offsets, T* c, int M, int N, int K, int E) {
  if constexpr (ENGINE == 0) {
    const int item = blockIdx.x;
    GroupWalk<BLOCK_M> walk(offsets, E, (N + BLOCK_N - 1) / BLOCK_N);
    if (walk.reach(item)) {
      const Scales<SCALES> scales = of_group(Scales<SCALES>{scale_a, scale_b, M, N, K}, walk.group);
      multiply_scaled<T, BLOCK_M, BLOCK_N, STAGES>(a, b + static_cast<long long>(walk.group) * N * K, scales,
                                                   c, walk.begin + walk.row(item),
                                                   walk.column(item) * BLOCK_N, walk.end);
    }
  }
}

// The sums of a tile, scaled as its group's matrix is.
template <typename Tma, int SCALES>
struct SumsOfGroup {
  Scales<SCALES> scales;
  int steps;

  __device__ __forceinline__ void operator()(const typename Tma::Shared& shared, typename Tma::Turn& turn,
                                             typename Tma::Sums& sums, const TmaTile& tile, int own) const {
    const Scales<SCALES> of_tile = of_group(scales, tile.right_row / scales.N);
    ScaledSums<Tma, SCALES, true>{of_tile, steps}(shared, turn, sums, tile, own);
  }
};

template <typename T, int ENGINE, int BLOCK_M, int BLOCK_N, int STAGES, int CLUSTER, int SCALES>
__global__ void __launch_bounds__(384, 1) CUBIND_CLUSTER_ALONG_X(CLUSTER)
    scaled_grouped_mm_tma(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                          const __grid_constant__ TensorMap c, const float* scale_a, const float* scale_b,
                          T* out, const int* offsets, int M, int N, int K, int E) {
  if constexpr (ENGINE == 1) {
    using Tma = TmaEngine<__nv_fp8_e4m3, T, BLOCK_M, BLOCK_N, STAGES, CLUSTER, true, false, true, true>;
    extern __shared__ __align__(1024) unsigned char dynamic[];
    const typename Tma::Shared shared = Tma::initialize(dynamic);
    const int steps = (K + Tma::kBlockK - 1) / Tma::kBlockK;
    const int columns = (N + CLUSTER * BLOCK_N - 1) / (CLUSTER * BLOCK_N);
    const GroupedTiles<T, BLOCK_M, BLOCK_N, CLUSTER> tiles = {out, N, N,
                                                              GroupWalk<BLOCK_M>(offsets, E, columns)};
    const SumsOfGroup<Tma, SCALES> sum = {{scale_a, scale_b, M, N, K}, steps};
    Tma::run(shared, a, b, c, tiles, steps, sum, AsItIs{});
  }
}
