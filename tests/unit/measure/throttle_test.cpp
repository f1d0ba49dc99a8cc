#include "tuner/measure/throttle.hpp"

#include <catch2/catch.hpp>

namespace cubind::measure {
namespace {

constexpr std::uint64_t kIdle = 0x1, kPowerCap = 0x4, kHardwareSlowdown = 0x8, kSoftwareThermal = 0x20,
                        kHardwareThermal = 0x40, kPowerBrake = 0x80;

TEST_CASE("thermal and hardware slowdown count and a power cap does not") {
  CHECK(is_slowdown(kHardwareSlowdown));
  CHECK(is_slowdown(kSoftwareThermal));
  CHECK(is_slowdown(kHardwareThermal));
  CHECK(is_slowdown(kPowerBrake));
  CHECK_FALSE(is_slowdown(kPowerCap));
  CHECK_FALSE(is_slowdown(kIdle));
}

TEST_CASE("blocks under a power cap are kept") {
  ThrottlePolicy policy;
  for (int i = 0; i < 10; ++i) {
    CHECK(policy.judge(kPowerCap) == BlockVerdict::Keep);
  }
}

TEST_CASE("three throttled blocks in a row are dropped and what follows is kept and marked") {
  ThrottlePolicy policy;
  for (int i = 0; i < 3; ++i) {
    CHECK(policy.judge(kSoftwareThermal) == BlockVerdict::Drop);
  }
  for (int i = 0; i < 5; ++i) {
    CHECK(policy.judge(kSoftwareThermal) == BlockVerdict::KeepThrottled);
  }
}

TEST_CASE("a block without slowdown ends the row of dropped ones") {
  ThrottlePolicy policy;
  policy.judge(kHardwareThermal);
  policy.judge(kHardwareThermal);
  CHECK(policy.judge(0) == BlockVerdict::Keep);
  for (int i = 0; i < 3; ++i) {
    CHECK(policy.judge(kHardwareThermal) == BlockVerdict::Drop);
  }
  CHECK(policy.judge(kHardwareThermal | kPowerCap) == BlockVerdict::KeepThrottled);
}

}  // namespace
}  // namespace cubind::measure
