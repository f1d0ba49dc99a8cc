// Margins of a timer that ticks. CUPTI on an H200 ticks every 32 ns: 4 % of a 0.8 us kernel, so a percentage
// alone would call one tick of difference a result.
#pragma once

#include <span>

#include "tuner/measure/measure_settings.hpp"

namespace cubind {

/// The larger of `fraction` of `reference_us` and two ticks, in microseconds.
double margin_us(double reference_us, double fraction, double tick_us, const MeasureSettings& settings);

/// Whether `time_us` is so short that a tick is more than a quarter of a percent. The finals then compare
/// means, since medians are whole ticks; screening compares medians: of six samples two may be outliers.
bool is_short(double time_us, double tick_us, const MeasureSettings& settings);

/// The value by which a set of samples is compared: the median, or the mean of short ones (is_short).
/// At least one sample.
double location_us(std::span<const double> samples_us, double tick_us, const MeasureSettings& settings);

/// The value that screening compares: the smallest sample, or the median of short ones. At least one sample.
double screen_value_us(std::span<const double> samples_us, double tick_us, const MeasureSettings& settings);

}  // namespace cubind
