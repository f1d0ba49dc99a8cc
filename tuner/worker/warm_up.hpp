// Work until the SM clock is steady: an idle GPU is at a fraction of its clock and may take tens of
// milliseconds to rise.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>

#include "tuner/measure/measure_settings.hpp"

namespace cubind::worker {

/// Whether the last readings lie within a band. Pure.
class SteadyClock {
 public:
  /// `highest_mhz`: of the device; 0 if unknown.
  explicit SteadyClock(const MeasureSettings& settings, std::uint32_t highest_mhz = 0)
      : settings_(settings), highest_mhz_(highest_mhz) {}
  /// Takes a reading; says whether the clock is steady now, as it is once it is the highest.
  bool add(std::uint32_t sm_mhz);

 private:
  MeasureSettings settings_;
  std::uint32_t highest_mhz_;
  std::deque<std::uint32_t> readings_;
};

struct WarmUpResult {
  bool steady = false;  // false: the time was up first
  std::uint32_t readings = 0;
};

/// Calls `work` (which enqueues work and waits for it) for some milliseconds between readings of `sm_mhz`,
/// until the clock is steady or the limit has passed. A reading of 0 means unknown: then the limit decides.
WarmUpResult warm_up(const std::function<void()>& work, const std::function<std::uint32_t()>& sm_mhz,
                     const MeasureSettings& settings, std::uint32_t highest_mhz = 0);

}  // namespace cubind::worker
