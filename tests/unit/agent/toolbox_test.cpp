#include "tuner/agent/compile/toolbox.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/triton_kernel.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

std::string refusal_by(const Toolbox& toolbox) {
  const Error error = error_of([&] { toolbox.choose({13000, "sm_90"}); }).value();
  CHECK(error.code() == ErrorCode::FailedPrecondition);
  return error.what();
}

TEST_CASE("where no NVRTC is found the error says how to name one and where was looked") {
  const Toolbox toolbox({},
                        {{}, {"CUBIND_CUDA_HOME: not set", "/usr/local/cuda: no libnvrtc.so.12 or later"}});
  const std::string error = refusal_by(toolbox);
  CHECK_THAT(error, Contains("name a CUDA toolkit by CUBIND_CUDA_HOME"));
  CHECK_THAT(error, Contains("the Python wheel nvidia-cuda-nvrtc"));
  CHECK_THAT(error, Contains("CUBIND_CUDA_HOME: not set"));
  CHECK_THAT(error, Contains("/usr/local/cuda: no libnvrtc.so.12 or later"));
}

TEST_CASE("an NVRTC that was found and does not work is named with the reason") {
  AgentOptions options;
  options.worker_program = "/nowhere/cubind-worker";
  options.compile_jobs = 1;
  Toolchain broken;
  broken.major = 13;
  broken.found_in = "/opt/cuda";
  const std::string error = refusal_by(Toolbox(options, {{broken}, {"/opt/cuda: nvrtc 13.0"}}));
  CHECK_THAT(error, Contains("nvrtc 13.0 (/opt/cuda) is left out: "));
}

WantedCompiler rows_for(const std::string& architecture) {
  v1::SpecBundle bundle;
  to_wire(TritonSpec().parse()->bundle, bundle);
  return wanted_compiler(bundle, 0, architecture);
}

TEST_CASE("where there is no Triton the error says which one a kernel needs and how the agent gets it") {
  const Toolbox toolbox({}, {});
  CHECK_THROWS_WITH(toolbox.choose(rows_for("sm_90")),
                    Contains("the kernel is for sm_90 and needs triton 3.6.0 with its ptxas 12.9") &&
                        Contains("this agent has no Triton") && Contains("pip install triton==3.6.0") &&
                        Contains("--triton-python"));
}

TEST_CASE("a Python that does not answer is left out and named where its Triton is wanted") {
  AgentOptions options;
  options.compile_jobs = 1;
  options.triton_worker = triton_worker();
  options.triton_pythons = {"/usr/bin/false", "/nowhere/python"};
  const Toolbox toolbox(options, {});
  CHECK(toolbox.tools().empty());
  CHECK_THROWS_WITH(toolbox.choose(rows_for("sm_90")),
                    Contains("Triton (--triton-python /usr/bin/false) is left out: ") &&
                        Contains("it ended before its hello (exit code 1)") &&
                        Contains("Triton (--triton-python /nowhere/python) is left out: "));
}

TEST_CASE("a Python that says more than a pipe holds before its hello is heard to the end") {
  const TempDir folder;
  AgentOptions options;
  options.compile_jobs = 1;
  options.triton_worker = triton_worker();
  options.triton_pythons = {(folder.path() / "python").string()};
  write_file_atomic(options.triton_pythons[0], "#!/bin/sh\nhead -c 200000 /dev/zero >&2\nexit 3\n", 0755);
  CHECK_THROWS_WITH(Toolbox(options, {}).choose(rows_for("sm_90")),
                    Contains("it ended before its hello (exit code 3)"));
}

}  // namespace
}  // namespace cubind::test
