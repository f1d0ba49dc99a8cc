// The 16-bit types of variants/common and those of the toolkit, whose headers take longer to compile.
#include <catch2/catch.hpp>
#include <string>

#include "base/file.hpp"
#include "tests/nvrtc/compile_worker/any_toolchain.hpp"
#include "tests/nvrtc/compile_worker/worker_process.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

constexpr char kOfToolkit[] = R"(
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__device__ __forceinline__ float to_float(__half value) { return __half2float(value); }
__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
template <typename T> __device__ __forceinline__ T from_float(float value);
template <> __device__ __forceinline__ __half from_float<__half>(float value) { return __float2half_rn(value); }
template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <typename T> __device__ __forceinline__ unsigned int rounded_pair(float low, float high);
template <> __device__ __forceinline__ unsigned int rounded_pair<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned int*>(&pair);
}
template <> __device__ __forceinline__ unsigned int rounded_pair<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned int*>(&pair);
}
)";

constexpr char kConvert[] = R"(
template <typename T>
__global__ void convert(const T* from, const float* values, float* widened, T* rounded, unsigned int* pairs) {
  const int i = threadIdx.x;
  widened[i] = to_float(from[i]);
  rounded[i] = from_float<T>(values[i]);
  pairs[i] = rounded_pair<T>(values[2 * i], values[2 * i + 1]);
}
)";

const std::vector<std::string> kEntries = {"convert<__half>", "convert<__nv_bfloat16>"};

std::string own_types() { return read_file((source_dir() / "variants/common/half_types.cuh").string()); }

std::string compiled(WorkerProcess& worker, v1::CompileRequest request, const std::string& architecture) {
  request.set_architecture(architecture);
  const v1::CompileReply reply = worker.compile(request);
  INFO(architecture << " " << reply.log());
  CHECK(reply.outcome() == v1::CORRECT);
  return reply.cubin();
}

}  // namespace

TEST_CASE("the kernels' 16-bit types are compiled to the same code as the toolkit's") {
  const Toolchain& toolchain = any_toolchain();
  const auto with_own = compile_request(own_types() + kConvert, kEntries);
  const auto with_toolkit =
      compile_request_with_headers(std::string(kOfToolkit) + kConvert, kEntries, toolchain);
  WorkerProcess worker(toolchain);
  for (const char* architecture : {"sm_80", "sm_89", "sm_90", "sm_90a"}) {
    INFO(toolchain.name() << " " << architecture);
    CHECK(compiled(worker, with_own, architecture) == compiled(worker, with_toolkit, architecture));
  }
}

TEST_CASE("the kernels' 16-bit types are compiled for sm_75 too") {
  WorkerProcess worker(any_toolchain());
  compiled(worker, compile_request(own_types() + kConvert, kEntries), "sm_75");
}

TEST_CASE("the kernels' 16-bit types say that the toolkit's cannot be used with them") {
  const Toolchain& toolchain = toolchains().front();
  WorkerProcess worker(toolchain);
  const auto both = compile_request_with_headers("#include <cuda_bf16.h>\n" + own_types() + kConvert,
                                                 {"convert<__half>"}, toolchain);
  CHECK_THAT(worker.compile(both).log(), Catch::Matchers::Contains("include either"));
}

}  // namespace cubind::test
