// Headers of CUDA and CCCL that kernels use, compiled by each NVRTC here from what the closure finds.
#include "tuner/includes/toolkit_headers.hpp"

#include <catch2/catch.hpp>

#include "tests/nvrtc/compile_worker/any_toolchain.hpp"
#include "tests/nvrtc/compile_worker/worker_process.hpp"

namespace cubind::test {
namespace {

void check_compiles(const Toolchain& toolchain, const std::string& source) {
  REQUIRE(toolchain.read_header("cuda/std/limits"));
  WorkerProcess worker(toolchain);
  auto request = compile_request_with_headers(source, {"k"}, toolchain);
  request.set_architecture("sm_90");
  const v1::CompileReply reply = worker.compile(request);
  INFO(toolchain.name() << "\n" << reply.log());
  CHECK(reply.outcome() == v1::CORRECT);
}

}  // namespace

TEST_CASE("block and warp algorithms of CUB compile") {
  check_compiles(any_toolchain(), R"(
    #include <cub/block/block_load.cuh>
    #include <cub/block/block_reduce.cuh>
    #include <cub/block/block_scan.cuh>
    #include <cub/block/block_store.cuh>
    #include <cub/warp/warp_reduce.cuh>
    __global__ void k(const float* x, float* y) {
      using Load = cub::BlockLoad<float, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
      using Store = cub::BlockStore<float, 128, 4, cub::BLOCK_STORE_TRANSPOSE>;
      using Scan = cub::BlockScan<float, 128>;
      using Reduce = cub::BlockReduce<float, 128>;
      using Warp = cub::WarpReduce<float>;
      __shared__ union { Load::TempStorage load; Store::TempStorage store; Scan::TempStorage scan;
                         Reduce::TempStorage reduce; Warp::TempStorage warp[4]; } t;
      float items[4];
      Load(t.load).Load(x, items);
      __syncthreads();
      Scan(t.scan).InclusiveSum(items, items);
      __syncthreads();
      const float sum = Reduce(t.reduce).Sum(items);
      __syncthreads();
      items[0] += sum + Warp(t.warp[threadIdx.x / 32]).Sum(items[1]);
      __syncthreads();
      Store(t.store).Store(y, items);
    })");
}

TEST_CASE("what device code uses of CUB compiles from cub.cuh") {
  check_compiles(any_toolchain(), R"(
    #include <cub/cub.cuh>
    #include <thrust/device_vector.h>
    __global__ void k(int* x) {
      using Sort = cub::BlockRadixSort<int, 128, 1>;
      __shared__ Sort::TempStorage t;
      int items[1] = {x[threadIdx.x]};
      Sort(t).Sort(items);
      x[threadIdx.x] = items[0];
    })");
}

TEST_CASE("the parts of the C++ standard library in CCCL compile") {
  check_compiles(any_toolchain(), R"(
    #include <cuda/std/array>
    #include <cuda/std/cstdint>
    #include <cuda/std/limits>
    #include <cuda/std/tuple>
    #include <cuda/std/type_traits>
    #include <cuda/std/utility>
    static_assert(cuda::std::is_same_v<cuda::std::int64_t, long long>);
    __global__ void k(float* x) {
      const auto [a, b] = cuda::std::make_tuple(x[0], 1);
      cuda::std::array<float, 2> pair = {a, cuda::std::numeric_limits<float>::max()};
      x[0] = pair[b];
    })");
}

TEST_CASE("barriers and pipelines and cooperative groups compile") {
  check_compiles(any_toolchain(), R"(
    #include <cooperative_groups.h>
    #include <cooperative_groups/memcpy_async.h>
    #include <cooperative_groups/reduce.h>
    #include <cuda/barrier>
    #include <cuda/pipeline>
    namespace cg = cooperative_groups;
    __global__ void k(const float* x, float* y) {
      __shared__ float tile[256];
      __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
      const cg::thread_block block = cg::this_thread_block();
      if (block.thread_rank() == 0) { init(&barrier, block.size()); }
      block.sync();
      cuda::memcpy_async(block, tile, x, cuda::aligned_size_t<16>(sizeof(tile)), barrier);
      barrier.arrive_and_wait();
      auto pipeline = cuda::make_pipeline();
      pipeline.producer_acquire();
      pipeline.producer_commit();
      const auto warp = cg::tiled_partition<32>(block);
      y[block.thread_rank()] = cg::reduce(warp, tile[block.thread_rank()], cg::plus<float>());
    })");
}

TEST_CASE("16-bit types and tensor cores compile next to CCCL") {
  const Toolchain& toolchain = any_toolchain();
  const bool has_crt = toolchain.read_header("crt/mma.h").has_value();
  const std::string mma = R"(
      using namespace nvcuda::wmma;
      fragment<matrix_a, 16, 16, 16, __half, row_major> a;
      fragment<matrix_b, 16, 16, 16, __half, col_major> b;
      fragment<accumulator, 16, 16, 16, float> c;
      fill_fragment(c, 0.0f);
      load_matrix_sync(a, x, 16);
      load_matrix_sync(b, x, 16);
      mma_sync(c, a, b, c);
      store_matrix_sync(z, c, 16, mem_row_major);)";
  check_compiles(toolchain,
                 std::string("#include <cuda/std/limits>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n") +
                     (has_crt ? "#include <mma.h>\n" : "") +
                     "__global__ void k(const __half* x, __nv_bfloat16* y, float* z) { y[0] = "
                     "__float2bfloat16(__half2float(x[0]) + cuda::std::numeric_limits<float>::max());" +
                     (has_crt ? mma : "") + "}");
}

}  // namespace cubind::test
