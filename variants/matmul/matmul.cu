// C = activation(A * B + bias), A of M x K, B of K x N and C of M x N elements, summed in float32.
//
// A and B are row-major and dense; TRANSPOSE_A says that A is given as its transpose (K x M), TRANSPOSE_B that
// B is (N x K, as the weights of a linear layer). bias has N elements and is not read where BIAS is 0.
// ACTIVATION is 0 none, 1 GELU (by erf), 2 SiLU. Nothing overlaps C; all are aligned to 16 bytes.
//
// ENGINE    0 mma.sync, 1 wgmma (sm_90a), 3 wgmma fed by TMA (sm_90a), for 16-bit elements; 2 fused multiply-adds, for
//           float32
// BLOCK_M, BLOCK_N, BLOCK_K  the tile of C that a block computes, and how far it goes along K at a time
// WARPS_M, WARPS_N           warps of a block along M and N; wgmma takes four along M for each warpgroup
// STAGES    buffers of shared memory that tiles of A and B go through
// GROUP_M   rows of tiles that neighbouring blocks go down before they move on along N, for the L2 cache
// VECTOR    elements that a thread copies at once, a divisor of the rows of A and B as they lie in memory
// SPLIT_K   parts of K that are summed by blocks of their own and added up in order, so that the result is the
//           same bits every time
// CLUSTER   SPLIT_K: these blocks are a cluster (sm_90) and read each other's sums from shared memory; 1: they
//           leave SPLIT_K x M x N sums in `partial`, which matmul_finish adds up
//
// ENGINE 3 is the kernel matmul_tma: WARPS_M is 8 where two warpgroups share a tile, 4 where they take turns, and the
// blocks of a CLUSTER share what they load.
//
// Grid (tiles of C, SPLIT_K). Shared memory: STAGES * (BLOCK_M + BLOCK_N) * BLOCK_K elements, or, where that is more,
// the finished tile with rows padded by 16 bytes (in a cluster: the tile of sums, by 32), and 1024 bytes for
// alignment.
#include "epilogue.cuh"
#include "ffma_engine.cuh"
#include "mma_engine.cuh"
#include "stages.cuh"
#include "tiles_of_c.cuh"
#include "tma_engine.cuh"
#include "wgmma_engine.cuh"

enum Engine { kMma = 0, kWgmma = 1, kFfma = 2, kTma = 3 };

template <int ENGINE, typename S>
struct EngineOf;
template <typename S>
struct EngineOf<kMma, S> {
  using Type = MmaEngine<S>;
};
template <typename S>
struct EngineOf<kWgmma, S> {
  using Type = WgmmaEngine<S>;
};
template <typename S>
struct EngineOf<kFfma, S> {
  using Type = FfmaEngine<S>;
};

template <typename T, int ENGINE, int BLOCK_M, int BLOCK_N, int BLOCK_K, int WARPS_M, int WARPS_N, int STAGES,
          int GROUP_M, int VECTOR, int SPLIT_K, int CLUSTER, int TRANSPOSE_A, int TRANSPOSE_B, int BIAS,
          int ACTIVATION>
__global__ void __launch_bounds__(WARPS_M* WARPS_N * 32) CUBIND_CLUSTER_ALONG_Y(CLUSTER)
    matmul(const T* a, const T* b, const T* bias, T* c, float* partial, int M, int N, int K) {
  if constexpr (ENGINE != kTma) {
    using S = Stages<T, BLOCK_M, BLOCK_N, BLOCK_K, WARPS_M, WARPS_N, STAGES, VECTOR, TRANSPOSE_A != 0,
                     TRANSPOSE_B != 0>;
    extern __shared__ __align__(1024) unsigned char dynamic[];
    unsigned char* shared = dynamic + (0u - shared_address(dynamic)) % 1024;

    const TileOfC tile =
        tile_of_block<GROUP_M>(blockIdx.x, (M + BLOCK_M - 1) / BLOCK_M, (N + BLOCK_N - 1) / BLOCK_N);
    const int m = tile.row * BLOCK_M, n = tile.column * BLOCK_N;
    const int steps = (K + BLOCK_K - 1) / BLOCK_K;
    const int part = (steps + SPLIT_K - 1) / SPLIT_K;  // steps of a block; the last ones may have fewer
    const int first = int(blockIdx.y) * part;
    const S stages = {TRANSPOSE_A ? Matrix<T>{a, K, M} : Matrix<T>{a, M, K},
                      TRANSPOSE_B ? Matrix<T>{b, N, K} : Matrix<T>{b, K, N},
                      m,
                      n,
                      first * BLOCK_K,
                      first + part < steps ? part : steps - first,
                      shared_address(shared)};

    typename EngineOf<ENGINE, S>::Type engine;
    if constexpr (ENGINE == kFfma) {
      engine.run(stages, shared);
    } else {
      engine.run(stages);
    }
    if constexpr (CLUSTER > 1) {
      __syncthreads();  // all have read the last stage
      keep_sums<BLOCK_N>(engine, reinterpret_cast<float*>(shared));
      meet_cluster();
      store_share<BLOCK_M, BLOCK_N, S::kThreads, CLUSTER, BIAS, ACTIVATION>(
          shared_address(shared), int(blockIdx.y), bias, c, m, n, M, N);
      meet_cluster();  // a block's sums are there until all have read them
    } else if constexpr (SPLIT_K > 1) {
      store_partial(engine, partial + static_cast<long long>(blockIdx.y) * M * N, m, n, M, N);
    } else {
      __syncthreads();  // all have read the last stage
      T* finished = reinterpret_cast<T*>(shared);
      finish<BIAS, ACTIVATION, BLOCK_N>(engine, bias, finished, n, N);
      __syncthreads();
      store_finished<BLOCK_M, BLOCK_N, S::kThreads>(finished, c, m, n, M, N);
    }
  }
}

template <typename T, int BIAS, int ACTIVATION>
struct Finish {
  const T* bias;
  int N;

  // Two elements of a row, and the same columns of another one.
  __device__ __forceinline__ void operator()(float (&values)[4], int, int column) const {
    const bool inside = BIAS != 0 && column < N;
    const float offsets[2] = {inside ? to_float(bias[column]) : 0.0f,
                              inside ? to_float(bias[column + 1]) : 0.0f};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[i] = activate<ACTIVATION>(BIAS != 0 ? values[i] + offsets[i % 2] : values[i]);
    }
  }
};

// C by ENGINE 3, with a grid of as many clusters as the device holds, or fewer where there are fewer tiles.
template <typename T, int ENGINE, int BLOCK_M, int BLOCK_N, int WARPS_M, int STAGES, int GROUP_M, int CLUSTER,
          int TRANSPOSE_A, int TRANSPOSE_B, int BIAS, int ACTIVATION>
__global__ void __launch_bounds__(384, 1) CUBIND_CLUSTER_ALONG_X(CLUSTER)
    matmul_tma(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
               const __grid_constant__ TensorMap c, const T* bias, int M, int N, int K) {
  if constexpr (ENGINE == kTma) {
    using Tiles = TilesOfC<BLOCK_M, BLOCK_N, GROUP_M, CLUSTER>;
    using E = TmaEngine<T, T, BLOCK_M, BLOCK_N, STAGES, CLUSTER, Tiles::kShareA, WARPS_M == 4,
                        TRANSPOSE_A == 0, TRANSPOSE_B != 0>;
    extern __shared__ __align__(1024) unsigned char dynamic[];
    const typename E::Shared shared = E::initialize(dynamic);
    const int steps = (K + E::kBlockK - 1) / E::kBlockK;
    E::run(shared, a, b, c, Tiles(M, N), steps, typename E::Sum{steps}, Finish<T, BIAS, ACTIVATION>{bias, N});
  }
}

// C from the sums of the SPLIT_K parts, four elements a thread.
template <typename T, int SPLIT_K, int BIAS, int ACTIVATION>
__global__ void __launch_bounds__(256)
    matmul_finish(const float* partial, const T* bias, T* c, int M, int N) {
  const long long count = static_cast<long long>(M) * N;
  const long long first = (static_cast<long long>(blockIdx.x) * 256 + threadIdx.x) * 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (first + i < count) {
      float sum = 0.0f;
#pragma unroll
      for (int part = 0; part < SPLIT_K; ++part) {
        sum += partial[part * count + first + i];
      }
      if constexpr (BIAS != 0) {
        sum += to_float(bias[(first + i) % N]);
      }
      c[first + i] = from_float<T>(activate<ACTIVATION>(sum));
    }
  }
}
