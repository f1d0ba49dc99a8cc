// ENGINE 2, for float32: each thread multiplies by fused multiply-adds, operands taken four values of k at a time.
#pragma once

template <typename S>
struct FfmaEngine {
  static constexpr int kWarpM = S::kBlockM / S::kWarpsM, kWarpN = S::kBlockN / S::kWarpsN;
  static constexpr int kLanesM = kWarpM >= kWarpN ? 8 : 4, kLanesN = 32 / kLanesM;

  float sums[kWarpM / kLanesM][kWarpN / kLanesN];

  // As in MmaEngine.
  static constexpr int kRows = kWarpM / kLanesM, kColumns = kWarpN / kLanesN;
  static constexpr int kRun = S::kRightAlongK ? 1 : 4;
  static_assert(kRows % 4 == 0 && kColumns % 4 == 0, "whole vectors");
  static __device__ __forceinline__ int row(int i) {
    return place<S::kLeftAlongK, kLanesM>(i, lane() / kLanesN) + warp() % S::kWarpsM * kWarpM;
  }
  static __device__ __forceinline__ int column(int j) {
    return place<S::kRightAlongK, kLanesN>(j, lane() % kLanesN) + warp() / S::kWarpsM * kWarpN;
  }
  __device__ __forceinline__ float sum(int i, int j) const { return sums[i][j]; }

  __device__ __forceinline__ void run(const S& stages, const unsigned char* shared) {
#pragma unroll
    for (int i = 0; i < kRows * kColumns; ++i) {
      sums[i / kColumns][i % kColumns] = 0.0f;
    }
#pragma unroll 1
    for (int step = 0; step < S::kStages - 1; ++step) {
      stages.start(step);
    }
#pragma unroll 1
    for (int step = 0; step < stages.steps; ++step) {
      wait_for_copies<S::kStages - 2>();
      __syncthreads();
      stages.start(step + S::kStages - 1);
      const unsigned char* left = shared + (stages.left(step) - stages.shared);
#pragma unroll 1
      for (int k = 0; k < S::kBlockK; k += 4) {
        multiply(left, left + S::Left::kBytes, k);
      }
    }
  }

 private:
  static __device__ __forceinline__ int lane() { return int(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return int(threadIdx.x) / 32; }

  // Lanes take single rows of a tile whose rows run along k, so that eight of them read eight rows, and four
  // adjacent elements of the others.
  template <bool ALONG_K, int LANES>
  static __device__ __forceinline__ int place(int i, int lane) {
    return ALONG_K ? i * LANES + lane : i / 4 * (LANES * 4) + lane * 4 + i % 4;
  }

  // values[i][0 .. 3]: element i of this thread at k to k + 3.
  template <bool ALONG_K, typename Tile, int COUNT, typename Place>
  static __device__ __forceinline__ void load(float (&values)[COUNT][4], const unsigned char* tile, int k,
                                              Place place) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const int offset = ALONG_K ? Tile::offset(place(i), k) : Tile::offset(k + i % 4, place(i / 4 * 4));
      const float4 vector = *reinterpret_cast<const float4*>(tile + offset);
      const float parts[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        if constexpr (ALONG_K) {
          values[i][part] = parts[part];
        } else {
          values[i / 4 * 4 + part][i % 4] = parts[part];
        }
      }
    }
  }

  __device__ __forceinline__ void multiply(const unsigned char* left, const unsigned char* right, int k) {
    float a[kRows][4], b[kColumns][4];
    load<S::kLeftAlongK, typename S::Left>(a, left, k, row);
    load<S::kRightAlongK, typename S::Right>(b, right, k, column);
#pragma unroll
    for (int part = 0; part < 4; ++part) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          sums[i][j] = fmaf(a[i][part], b[j][part], sums[i][j]);
        }
      }
    }
  }
};
