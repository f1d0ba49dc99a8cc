// Medians, means and their percentile bootstrap intervals. Every function is pure: the same samples and seed
// give the same bits on every machine, so that a resumed job decides as the undisturbed one would have.
#pragma once

#include <cstdint>
#include <span>

#include "base/digest.hpp"

namespace cubind {

/// `samples`: at least one. The mean of the middle two if their number is even.
double median(std::span<const double> samples);
double mean(std::span<const double> samples);
/// Leaves out the lowest and the highest sixth: now and then a sample is several times the others.
double trimmed_mean(std::span<const double> samples);

struct ConfidenceInterval {
  double low = 0;
  double high = 0;
  bool operator==(const ConfidenceInterval&) const = default;
};

/// The summary of the samples.
enum class Location : std::uint8_t { Median, Mean };
double location(std::span<const double> samples, Location kind);

struct BootstrapOptions {
  double confidence = 0.95;
  std::uint32_t resamples = 1000;
  Location kind = Location::Median;
  Digest seed;
};

/// The interval of the location. At least one sample (then both ends are that sample).
ConfidenceInterval bootstrap_interval(std::span<const double> samples, const BootstrapOptions& options);

struct PairedRatio {
  double ratio = 0;
  ConfidenceInterval interval;
};

/// How many times as long as b a takes, where a[i] and b[i] were measured in the same round: the estimate of
/// Hodges and Lehmann (the median of the geometric means of all pairs of the rounds' ratios) with Wilcoxon's
/// interval. It needs no normal distribution and bears outliers in a quarter of the rounds. The drift that a
/// round shares cancels, which it does not in a ratio of medians. Fewer rounds than the confidence needs (8
/// at 0.99) give the whole range of the ratios as interval. Equal sizes, at least 1.
PairedRatio paired_ratio(std::span<const double> a, std::span<const double> b, double confidence);

}  // namespace cubind
