#include "tuner/agent/toolbox.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/nvrtc/toolchains/toolchains.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

// Of all NVRTC installations of the tests: 13 and, where it is there, 12.
const Toolbox& toolbox() {
  static const Toolbox made = [] {
    AgentOptions options;
    options.worker_program = bin_dir() / "cubind-worker";
    return Toolbox(options, {toolchains(), {}});
  }();
  return made;
}

constexpr std::uint32_t kCuda11 = 11080, kCuda12 = 12040, kCuda13 = 13000, kCuda14 = 14000;

}  // namespace

TEST_CASE("the newest NVRTC whose major version the driver supports compiles") {
  CHECK(toolbox().choose(kCuda13, "").toolchain.major == toolchains().front().major);
  CHECK(toolbox().choose(kCuda14, "").toolchain.major == toolchains().front().major);
  CHECK(toolbox().choose(0, "sm_90").toolchain.major == toolchains().front().major);
  if (toolchain(12)) {
    CHECK(toolbox().choose(kCuda12, "sm_90").toolchain.major == 12);
  } else {
    WARN("there is no NVRTC 12 on this machine");
  }
}

TEST_CASE("where no NVRTC suits the driver the error names the driver and what there is") {
  try {
    toolbox().choose(kCuda11, "sm_90");
    FAIL("chose one");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::FailedPrecondition);
    CHECK_THAT(error.what(), Contains("11080") && Contains(toolchains().front().name()));
  }
}

TEST_CASE("an architecture that no NVRTC knows is named with what there is") {
  CHECK_THROWS_WITH(toolbox().choose(kCuda13, "sm_999"),
                    Contains("sm_999") && Contains(toolchains().front().name()));
}

}  // namespace cubind::test
