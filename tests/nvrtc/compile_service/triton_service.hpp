#pragma once

#include <chrono>
#include <string>

#include "tests/nvrtc/compile_service/service_requests.hpp"
#include "tests/support/triton_kernel.hpp"

namespace cubind::test {

/// A service whose worker runs the Triton of ./dev deps triton.
struct TritonService {
  explicit TritonService(std::chrono::milliseconds deadline = std::chrono::hours(1))
      : service(options(deadline, triton_python())) {}

  static CompileServiceOptions options(std::chrono::milliseconds deadline, const std::string& python) {
    CompileServiceOptions options;
    options.program = triton_program(python, triton_worker());
    options.slots = std::make_shared<CompileSlots>(1);
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
  v1::CompileReply compile(const v1::CompileRequest& request) { return test::compile(service, request); }

  CompileService service;
  const v1::Toolchain toolchain = service.probe();
  const std::string version = toolchain.name().substr(toolchain.name().find(' ') + 1);
};

}  // namespace cubind::test
