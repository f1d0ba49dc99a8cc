#include "tuner/worker/remedies.hpp"

#include <catch2/catch.hpp>

using Catch::Matchers::Contains;
using cubind::worker::with_remedies;

TEST_CASE("a name that nvcc brings without an include is reported with its header") {
  CHECK(with_remedies("error: identifier \"INFINITY\" is undefined\n") ==
        "error: identifier \"INFINITY\" is undefined (<cmath> has it)\n");
  CHECK_THAT(with_remedies("identifier \"uint32_t\" is undefined"), Contains("(<cstdint> has it)"));
  CHECK(with_remedies("identifier \"x\" is undefined") == "identifier \"x\" is undefined");
}

TEST_CASE("a name of the runtime is reported with what to do about host code") {
  const std::string text = with_remedies("identifier \"cudaMalloc\" is undefined\n  cudaMalloc();\n");
  CHECK_THAT(text, Contains("\"cudaMalloc\" is undefined (put host code between #ifndef __CUDACC_RTC__"));
  CHECK_THAT(text, Contains("--minimal") && Contains(")\n  cudaMalloc();\n"));
}

TEST_CASE("a function of the device runtime that is one instruction is reported with the instruction") {
  CHECK_THAT(
      with_remedies("identifier \"cudaGridDependencySynchronize\" is undefined"),
      Contains("write asm volatile(\"griddepcontrol.wait;\" ::: \"memory\"))") && !Contains("host code"));
  CHECK_THAT(
      with_remedies("identifier \"cudaTriggerProgrammaticLaunchCompletion\" is undefined"),
      Contains("write asm volatile(\"griddepcontrol.launch_dependents;\"))") && !Contains("host code"));
  CHECK_THAT(with_remedies("identifier \"cudaGetLastError\" is undefined"),
             Contains("device code has no CUDA runtime to call"));
}

TEST_CASE("what nvcc's options are for is reported with what NVRTC has instead") {
  CHECK_THAT(
      with_remedies("#error directive: needs nvcc's --expt-relaxed-constexpr"),
      Contains("(set --device-as-default-execution-space in \"options\", with which __CUDACC_RELAXED"));
  CHECK_THAT(
      with_remedies("__host__ or __device__ annotation on lambda requires --extended-lambda nvcc flag"),
      Contains("(NVRTC has no such option"));
  CHECK_THAT(with_remedies("identifier \"concept\" is undefined"),
             Contains("(C++20 has it: set --std=c++20"));
}

TEST_CASE("a name of the C and C++ libraries that only host code calls is reported as host code") {
  CHECK_THAT(with_remedies("identifier \"atoi\" is undefined"), Contains("(put host code between"));
  CHECK_THAT(with_remedies("namespace \"std\" has no member \"cout\""), Contains("(put host code between"));
}

TEST_CASE("what older C++ allowed is reported with what to write") {
  CHECK_THAT(with_remedies("error: use of the \"register\" storage class specifier is not allowed"),
             Contains("(C++17 has none: remove it"));
  CHECK_THAT(with_remedies("  extern \"C\"__global__ void k(float* x) {}"), Contains("space behind \"C\""));
}

TEST_CASE("a remedy appears once and a texture reference has its own") {
  const std::string line = "host functions are not allowed in JIT mode.\n";
  const std::string text = with_remedies(line + line);
  CHECK(text.find("prototypes too") == text.rfind("prototypes too"));
  CHECK_THAT(with_remedies("error: texture is not a template\n"), Contains("left CUDA with version 12"));
}

TEST_CASE("what the stand-ins lack is looked for in CCCL and host functions are guarded") {
  CHECK_THAT(with_remedies("namespace \"std\" has no member \"optional\""),
             Contains("\"optional\" (of the standard library") && Contains("cuda::std of <cuda/std/...>)"));
  CHECK_THAT(with_remedies("host functions are not allowed in JIT mode. Consider x\n"),
             Contains("Consider x (put host code between #ifndef __CUDACC_RTC__ and #endif"));
}
