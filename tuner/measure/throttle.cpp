#include "tuner/measure/throttle.hpp"

namespace cubind::measure {
namespace {

// NVML's bits (nvml.h: nvmlClocksEventReasons).
constexpr std::uint64_t kHardwareSlowdown = 0x08;
constexpr std::uint64_t kSoftwareThermal = 0x20;
constexpr std::uint64_t kHardwareThermal = 0x40;
constexpr std::uint64_t kHardwarePowerBrake = 0x80;

}  // namespace

bool is_slowdown(std::uint64_t throttle_reasons) {
  return (throttle_reasons &
          (kHardwareSlowdown | kSoftwareThermal | kHardwareThermal | kHardwarePowerBrake)) != 0;
}

BlockVerdict ThrottlePolicy::judge(std::uint64_t throttle_reasons) {
  if (!is_slowdown(throttle_reasons)) {
    dropped_in_a_row_ = 0;
    return BlockVerdict::Keep;
  }
  if (dropped_in_a_row_ == max_dropped_) {
    return BlockVerdict::KeepThrottled;
  }
  ++dropped_in_a_row_;
  return BlockVerdict::Drop;
}

}  // namespace cubind::measure
