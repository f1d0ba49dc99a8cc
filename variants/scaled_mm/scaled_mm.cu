// C = (scale_a * A) * (scale_b * B)^T of e4m3: A of M x K, B of N x K and C of M x N elements, summed in float32.
//
// SCALES 0: one number each; 1: one for each row of A and of B; 2: scale_a one for 128 elements of a row
// ([K / 128][M]), scale_b one for 128 x 128 elements ([N / 128][K / 128]), both rounded up; 3, 4: those of 0, 1.
//
// ENGINE    0 mma.sync (scaled_mm), of e4m3 from sm_89 on, of f16 before; 1 wgmma fed by TMA (scaled_mm_tma, sm_90a)
// BLOCK_M, BLOCK_N, STAGES, GROUP_M, CLUSTER   as in matmul.cu
//
// The tensor cores of sm_90 keep fewer bits than float32 while they add up. From SCALES 2 on, each 128 values of k are
// therefore added in registers; 0 and 1 have what torch's use_fast_accum has.
#include "scales.cuh"
#include "tiles_of_c.cuh"

template <typename T, int ENGINE, int BLOCK_M, int BLOCK_N, int STAGES, int GROUP_M, int SCALES>
__global__ void __launch_bounds__(256)
    scaled_mm(const __nv_fp8_e4m3* a, const __nv_fp8_e4m3* b, const float* scale_a, const float* scale_b,
              T* c, int M, int N, int K) {
  if constexpr (ENGINE == 0) {
    const TileOfC tile =
        tile_of_block<GROUP_M>(blockIdx.x, (M + BLOCK_M - 1) / BLOCK_M, (N + BLOCK_N - 1) / BLOCK_N);
    multiply_scaled<T, BLOCK_M, BLOCK_N, STAGES>(a, b, Scales<SCALES>{scale_a, scale_b, M, N, K}, c,
                                                 tile.row * BLOCK_M, tile.column * BLOCK_N, M);
  }
}

template <typename T, int ENGINE, int BLOCK_M, int BLOCK_N, int STAGES, int GROUP_M, int CLUSTER, int SCALES>
__global__ void __launch_bounds__(384, 1) CUBIND_CLUSTER_ALONG_X(CLUSTER)
    scaled_mm_tma(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                  const __grid_constant__ TensorMap c, const float* scale_a, const float* scale_b, int M,
                  int N, int K) {
  if constexpr (ENGINE == 1) {
    using Tiles = TilesOfC<BLOCK_M, BLOCK_N, GROUP_M, CLUSTER>;
    using E =
        TmaEngine<__nv_fp8_e4m3, T, BLOCK_M, BLOCK_N, STAGES, CLUSTER, Tiles::kShareA, false, true, true>;
    extern __shared__ __align__(1024) unsigned char dynamic[];
    const typename E::Shared shared = E::initialize(dynamic);
    const int steps = (K + E::kBlockK - 1) / E::kBlockK;
    const Scales<SCALES> scales = {scale_a, scale_b, M, N, K};
    E::run(shared, a, b, c, Tiles(M, N), steps, ScaledSums<E, SCALES, false>{scales, steps}, AsItIs{});
  }
}
