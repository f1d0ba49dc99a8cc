// Margins of a timer that ticks. CUPTI on an H200 ticks every 32 ns: 4 % of a 0.8 us kernel, so a percentage
// alone would call one tick of difference a result.
#pragma once

#include <span>

#include "tuner/measure/measure_settings.hpp"

namespace cubind {

/// The larger of `fraction` of `reference_us` and two ticks, in microseconds.
double margin_us(double reference_us, double fraction, double tick_us, const MeasureSettings& settings);

/// Whether `time_us` is so short that medians are whole ticks, each more than the tie margin: means are
/// compared.
bool compares_means(double time_us, double tick_us, const MeasureSettings& settings);

/// The value by which a set of samples is compared: the median, or the mean of short ones (compares_means).
/// At least one sample.
double location_us(std::span<const double> samples_us, double tick_us, const MeasureSettings& settings);

/// The value that screening compares: the smallest sample, or the median of short ones. At least one sample.
double screen_value_us(std::span<const double> samples_us, double tick_us, const MeasureSettings& settings);

}  // namespace cubind
