#include "tuner/measure/margins.hpp"

#include <algorithm>

#include "tuner/measure/statistics.hpp"

namespace cubind {

double margin_us(double reference_us, double fraction, double tick_us, const MeasureSettings& settings) {
  return std::max(reference_us * fraction, settings.margin_ticks * tick_us);
}

bool is_short(double time_us, double tick_us, const MeasureSettings& settings) {
  return time_us < settings.mean_below_ticks * tick_us;
}

double location_us(std::span<const double> samples_us, double tick_us, const MeasureSettings& settings) {
  const double middle = median(samples_us);
  return is_short(middle, tick_us, settings) ? trimmed_mean(samples_us) : middle;
}

double screen_value_us(std::span<const double> samples_us, double tick_us, const MeasureSettings& settings) {
  const double smallest = *std::ranges::min_element(samples_us);
  return is_short(smallest, tick_us, settings) ? median(samples_us) : smallest;
}

}  // namespace cubind
