#pragma once

#include <chrono>
#include <string>

#include "tests/nvrtc/compile_pool/pool_requests.hpp"
#include "tests/support/triton_kernel.hpp"

namespace cubind::test {

/// A pool whose worker runs the Triton of ./dev deps triton.
struct TritonPool {
  TritonPool() : TritonPool(CompilePoolOptions().deadline) {}
  explicit TritonPool(std::chrono::milliseconds deadline) : pool(options(deadline)) {}

  static CompilePoolOptions options(std::chrono::milliseconds deadline) {
    CompilePoolOptions options;
    options.program = triton_program(triton_python(), triton_worker());
    options.deadline = deadline;
    return options;
  }
  v1::CompileRequest request(const std::string& ttir,
                             const std::string& settings = R"({"num_warps":4})") const {
    v1::CompileRequest request;
    request.add_entries("add_one[0]");
    request.set_architecture("sm_90");
    request.mutable_triton()->set_ttir(ttir);
    request.mutable_triton()->set_options(settings);
    request.mutable_triton()->set_version(version);
    return request;
  }
  v1::CompileReply compile(const v1::CompileRequest& request) { return result_of(pool, request).reply; }

  CompilePool pool;
  const v1::Toolchain toolchain = pool.probe();
  const std::string version = toolchain.name().substr(toolchain.name().find(' ') + 1);
};

}  // namespace cubind::test
