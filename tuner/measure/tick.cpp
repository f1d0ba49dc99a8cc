#include "tuner/measure/tick.hpp"

#include <algorithm>
#include <vector>

#include "tuner/measure/statistics.hpp"

namespace cubind::measure {
namespace {

constexpr double kSameReadingUs = 0.0015;
constexpr std::size_t kFewestSteps = 3;

}  // namespace

std::optional<double> estimate_tick_us(std::span<const double> durations_us) {
  std::vector<double> sorted(durations_us.begin(), durations_us.end());
  std::ranges::sort(sorted);
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
  std::ranges::nth_element(steps, quartile);
  const double one = *quartile;
  const auto others =
      std::ranges::partition(steps, [one](double step) { return step > 0.9 * one && step < 1.1 * one; });
  return mean({steps.begin(), others.begin()});
}

}  // namespace cubind::measure
