#include "tuner/measure/tick.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace cubind::measure {
namespace {

constexpr double kSameReadingUs = 0.0015;
constexpr std::size_t kFewestSteps = 3;

}  // namespace

std::optional<double> estimate_tick_us(std::span<const double> durations_us) {
  std::vector<double> sorted(durations_us.begin(), durations_us.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> steps;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (const double step = sorted[i] - sorted[i - 1]; step > kSameReadingUs) {
      steps.push_back(step);
    }
  }
  if (steps.size() < kFewestSteps) {
    return std::nullopt;
  }
  // Gaps of several ticks are larger than the tick and none is smaller, so the lower quartile is a gap of one
  // tick. Rounding makes such gaps a nanosecond longer or shorter: their mean is the tick.
  const auto quartile = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 4);
  std::nth_element(steps.begin(), quartile, steps.end());
  const double one = *quartile;
  const auto several = std::partition(steps.begin(), steps.end(),
                                      [one](double step) { return step > 0.9 * one && step < 1.1 * one; });
  return std::accumulate(steps.begin(), several, 0.0) / static_cast<double>(several - steps.begin());
}

}  // namespace cubind::measure
