#include "tuner/worker/warm_up.hpp"

#include <algorithm>

namespace cubind::worker {
namespace {

// NVML refreshes a clock reading every few milliseconds; readings closer together are one reading.
constexpr std::chrono::milliseconds kBetweenReadings{8};

}  // namespace

bool SteadyClock::add(std::uint32_t sm_mhz) {
  if (highest_mhz_ > 0 && sm_mhz + settings_.steady_band_mhz >= highest_mhz_) {
    return true;
  }
  readings_.push_back(sm_mhz);
  if (readings_.size() > settings_.steady_readings) {
    readings_.pop_front();
  }
  if (readings_.size() < settings_.steady_readings) {
    return false;
  }
  const auto [lowest, highest] = std::ranges::minmax_element(readings_);
  return *lowest > 0 && *highest - *lowest <= settings_.steady_band_mhz;
}

WarmUpResult warm_up(const std::function<void()>& work, const std::function<std::uint32_t()>& sm_mhz,
                     const MeasureSettings& settings, std::uint32_t highest_mhz) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + settings.steady_limit;
  SteadyClock steady(settings, highest_mhz);
  WarmUpResult result;
  while (Clock::now() < end) {
    const Clock::time_point next = std::min(Clock::now() + kBetweenReadings, end);
    do {
      work();
    } while (Clock::now() < next);
    ++result.readings;
    if (steady.add(sm_mhz())) {
      result.steady = true;
      break;
    }
  }
  return result;
}

}  // namespace cubind::worker
