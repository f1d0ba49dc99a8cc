#include "server/jobs/toolchain_need.hpp"

#include <catch2/catch.hpp>

#include "server/jobs/agent.hpp"
#include "tests/support/triton_spec.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

const OfferedToolchain kNvrtc{"nvrtc 13.0", 13, 0, {"sm_80", "sm_90"}};
const OfferedToolchain kTriton{"triton 3.6.0", 0, 0, {"sm_90", "sm_100"}, {}, {}, {"12.9", "13.0"}};
const ToolchainNeed kCuda{{}, "sm_90", 0};
const ToolchainNeed kRows{TritonTarget{"3.6.0", "12.9", "sm_90"}};

TEST_CASE("a kernel is compiled by a toolchain of its own language alone") {
  CHECK(compiles(kNvrtc, kCuda));
  CHECK(compiles(kNvrtc, {}));
  CHECK_FALSE(compiles(kTriton, kCuda));
  CHECK_FALSE(compiles(kTriton, {}));
  CHECK_FALSE(compiles({"triton 3.6.0", 3, 6, {}}, {}));
  CHECK(compiles(kTriton, kRows));
  CHECK_FALSE(compiles(kNvrtc, kRows));
}

TEST_CASE("a Triton kernel is compiled by the version and the ptxas that it names for its architecture") {
  CHECK_FALSE(compiles(kTriton, {TritonTarget{"3.6.1", "12.9", "sm_90"}}));
  CHECK_FALSE(compiles(kTriton, {TritonTarget{"3.6.0", "12.8", "sm_90"}}));
  CHECK_FALSE(compiles(kTriton, {TritonTarget{"3.6.0", "12.9", "sm_100"}}));
  CHECK_FALSE(compiles(kTriton, {TritonTarget{"3.6.0", "12.9", "sm_80"}}));
  CHECK(compiles(kTriton, {TritonTarget{"3.6.0", "13.0", "sm_100"}}));
}

TEST_CASE("a Triton kernel is compiled for no architecture but its own") {
  ToolchainNeed need = kRows;
  need.architecture = "sm_90";
  CHECK(compiles(kTriton, need));
  need.architecture = "sm_100";
  CHECK_FALSE(compiles(kTriton, need));
}

TEST_CASE("a driver loads the cubins of a Triton kernel by the version of its ptxas") {
  const auto spec = TritonSpec().parse();
  CHECK(compiles(kTriton, {TritonTarget{"3.6.0", "12.9", "sm_90"}, "", 12020}));
  CHECK_FALSE(compiles(kTriton, {TritonTarget{"3.6.0", "12.9", "sm_90"}, "", 11080}));
  const ToolchainIdentity triton{"triton 3.6.0", {}, {}, {}};
  CHECK(driver_loads(12020, *spec, triton));
  CHECK_FALSE(driver_loads(11080, *spec, triton));
}

TEST_CASE("a Triton kernel's spec names its toolchain and another's leaves it open") {
  CHECK(toolchain_need(*TritonSpec().parse(), false) == kRows);
  CHECK(toolchain_need(KernelSpec(), false, "sm_90", 13000) == ToolchainNeed{{}, "sm_90", 13000});
}

TEST_CASE("where there is an NVRTC the reason says what it does not compile for") {
  AgentProfile agent;
  agent.toolchains = {kNvrtc, kTriton};
  CHECK_THAT(no_toolchain_because({{}, "sm_120", 0}, std::vector{agent}),
             Contains("none of nvrtc 13.0 compiles for sm_120. Install a newer NVRTC where an agent runs"));
  CHECK_THAT(no_toolchain_because({{}, "sm_90", 12020}, std::vector{agent}),
             Contains("none of nvrtc 13.0 compiles for sm_90 what a driver for CUDA 12.2 loads. Install an "
                      "NVRTC of CUDA 12 where an agent runs"));
}

TEST_CASE("where no agent has the toolchain the reason names what there is and what to install") {
  AgentProfile agent;
  agent.toolchains = {kNvrtc, {"triton 3.6.0", 0, 0, {"sm_90"}, {}, {}, {"12.8"}}};
  CHECK(no_toolchain_because(kRows, std::vector{agent}) ==
        "none has Triton 3.6.0 with ptxas 12.9 for sm_90 (there is nvrtc 13.0, triton 3.6.0 with ptxas "
        "12.8). Install it where an agent runs (pip install triton==3.6.0), name that Python by "
        "--triton-python, and start the agent again");
  CHECK_THAT(no_toolchain_because(kCuda, {}), Contains("none has NVRTC 12 or 13. Name a CUDA toolkit"));
}

TEST_CASE(
    "another user's source is compiled only where the sandbox is whole or the agent allows a partial one") {
  AgentProfile agent;
  agent.id = "node-7";
  OfferedToolchain open = kTriton;
  open.sandbox_lacks = {"Landlock: the kernel has none"};
  open.takes_foreign = false;
  agent.toolchains = {open};
  ToolchainNeed foreign = kRows;
  foreign.is_foreign = true;
  CHECK(compiles(open, kRows));
  CHECK(compiles(kTriton, foreign));
  CHECK_FALSE(may_tune(agent, foreign));
  CHECK_THAT(no_toolchain_because(foreign, std::vector{agent}),
             Contains("not whole on node-7 (triton 3.6.0): Landlock: the kernel has none. Run the agent") &&
                 Contains("--allow-partial-sandbox"));
  open.takes_foreign = true;
  CHECK(compiles(open, foreign));
  agent.toolchains = {};
  CHECK_THAT(no_toolchain_because(foreign, std::vector{agent}), Contains("none has Triton 3.6.0"));
}

}  // namespace
}  // namespace cubind::test
