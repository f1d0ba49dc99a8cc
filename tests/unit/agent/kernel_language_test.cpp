#include "tuner/agent/compile/kernel_language.hpp"

#include <catch2/catch.hpp>

#include "tests/support/triton_spec.hpp"

namespace cubind::test {
namespace {

std::unique_ptr<KernelLanguage> triton() {
  v1::Toolchain told;
  told.set_name("triton 3.6.0");
  for (const auto& [architecture, ptxas] : {std::pair("sm_90", "12.8.93"), std::pair("sm_100", "12.9.86")}) {
    told.add_architectures(architecture);
    told.add_assemblers(ptxas);
  }
  return triton_language(told);
}

const TritonTarget kTarget{"3.6.0", "12.8.93", "sm_90"};

TEST_CASE("Triton compiles the kernels of its own version and of the architecture's own ptxas alone") {
  const auto language = triton();
  CHECK(language->compiles({.triton = kTarget}));
  CHECK(language->compiles({.architecture = "sm_90", .triton = kTarget}));
  CHECK_FALSE(language->compiles({.architecture = "sm_90"}));
  CHECK_FALSE(language->compiles({.architecture = "sm_100", .triton = kTarget}));
  CHECK_FALSE(language->compiles({.triton = TritonTarget{"3.5.0", "12.8.93", "sm_90"}}));
  CHECK_FALSE(language->compiles({.triton = TritonTarget{"3.6.0", "12.9.86", "sm_90"}}));
  CHECK_FALSE(language->compiles({.triton = TritonTarget{"3.6.0", "12.8.93", "sm_80"}}));
}

TEST_CASE("Triton compiles for drivers that load what its ptxas makes") {
  const auto language = triton();
  CHECK(language->compiles({.driver_cuda = 12000, .triton = kTarget}));
  CHECK_FALSE(language->compiles({.driver_cuda = 11080, .triton = kTarget}));
}

TEST_CASE("NVRTC compiles no Triton kernel") {
  Toolchain toolchain;
  toolchain.major = 13;
  const auto language = nvrtc_language(toolchain);
  CHECK(language->compiles({.driver_cuda = 13000}));
  CHECK_FALSE(language->compiles({.triton = kTarget}));
}

TEST_CASE("a request of a Triton kernel has the configuration's text and options and the kernel's version") {
  const auto spec = TritonSpec().parse();
  const KernelBuild build = triton()->build(spec);
  CHECK(build.identity() == triton_identity(*spec->triton));
  const Problem problem{{{"N", 4096}}, {}, {}, ""};
  const v1::CompileRequest request =
      build.request(artifact_source(*spec, problem, {{{"CONFIG", 1}}}, "sm_90")).request;
  CHECK(request.triton().ttir() == "b");
  CHECK(request.triton().options() == R"({"num_stages":3,"num_warps":8})");
  CHECK(request.triton().version() == "3.6.0");
  CHECK(request.architecture() == "sm_90");
  CHECK(request.source().empty());
}

}  // namespace
}  // namespace cubind::test
