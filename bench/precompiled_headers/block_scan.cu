// The running sum of each tile, by CUB.
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

template <int kThreads, int kItems>
__global__ void block_scan(const float* x, float* y) {
  using Load = cub::BlockLoad<float, kThreads, kItems, cub::BLOCK_LOAD_TRANSPOSE>;
  using Scan = cub::BlockScan<float, kThreads>;
  using Store = cub::BlockStore<float, kThreads, kItems, cub::BLOCK_STORE_TRANSPOSE>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Scan::TempStorage scan;
    typename Store::TempStorage store;
  } storage;
  const auto offset = static_cast<long long>(blockIdx.x) * kThreads * kItems;
  float items[kItems];
  Load(storage.load).Load(x + offset, items);
  __syncthreads();
  Scan(storage.scan).InclusiveSum(items, items);
  __syncthreads();
  Store(storage.store).Store(y + offset, items);
}
