#include <catch2/catch.hpp>
#include <sstream>
#include <string>

#include "base/file.hpp"
#include "tests/nvrtc/compile_worker/any_toolchain.hpp"
#include "tests/nvrtc/compile_worker/worker_process.hpp"

namespace cubind::test {
namespace {

// Pages that the kernel has given to a process so far: minflt, the tenth field of proc(5)'s stat.
std::uint64_t page_faults(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));  // from the third field on
  std::string field;
  for (int number = 3; number <= 10; ++number) {
    fields >> field;
  }
  return std::stoull(field);
}

}  // namespace

TEST_CASE("a worker compiles in the memory that the compile before it has freed") {
  const Toolchain& toolchain = any_toolchain();
  const auto request = compile_request_with_headers(
      "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"
      "template <int N> __global__ void k(__nv_bfloat16* x, __half* y) {\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < N; ++i) x[i] = __float2bfloat16(__half2float(y[i]) * __bfloat162float(x[i]));\n"
      "}\n",
      {"k<64>"}, toolchain);
  WorkerProcess worker(toolchain);
  REQUIRE(worker.compile(request).outcome() == v1::CORRECT);
  REQUIRE(worker.compile(request).outcome() == v1::CORRECT);
  const std::uint64_t before = page_faults(worker.pid());
  for (int i = 0; i < 4; ++i) {
    REQUIRE(worker.compile(request).outcome() == v1::CORRECT);
  }
  CHECK(page_faults(worker.pid()) - before < 4 * 200);
}

}  // namespace cubind::test
