// Decides which blocks of samples count when a GPU slows itself down.
#pragma once

#include <cstdint>

#include "tuner/measure/measure_settings.hpp"

namespace cubind::measure {

/// Whether NVML's clock event reasons include a thermal or hardware slowdown (thermal by hardware or
/// software, power brake). A software power cap is not one: it is the steady state of a busy GPU, and
/// finalists are compared within a round.
bool is_slowdown(std::uint64_t throttle_reasons);

/// The decision about a block.
enum class BlockVerdict : std::uint8_t {
  Keep,
  Drop,           // measure it again
  KeepThrottled,  // slowed down, as the next blocks would be: kept and marked
};

/// Use one object per device. Drops blocks under slowdown, at most `max_dropped_blocks` in a row. Later
/// blocks are kept and marked until a block without slowdown comes. Not thread-safe.
class ThrottlePolicy {
 public:
  explicit ThrottlePolicy(const MeasureSettings& settings = {}) : max_dropped_(settings.max_dropped_blocks) {}

  BlockVerdict judge(std::uint64_t throttle_reasons);

 private:
  std::uint32_t max_dropped_;
  std::uint32_t dropped_in_a_row_ = 0;
};

}  // namespace cubind::measure
