#include "tuner/measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"

namespace cubind {
namespace {

void require_samples(std::size_t count) {
  if (count == 0) {
    throw Error(ErrorCode::Internal, "statistics", "no samples");
  }
}

// Reorders `values`.
double median_in_place(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) {
    return *middle;
  }
  return (*std::ranges::max_element(values.begin(), middle) + *middle) / 2;
}

double location_in_place(std::vector<double>& values, Location kind) {
  return kind == Location::Median ? median_in_place(values) : mean(values);
}

// The percentiles that leave (1 - confidence) / 2 on either side.
ConfidenceInterval percentile_interval(std::vector<double>& statistics, double confidence) {
  std::ranges::sort(statistics);
  const double last = static_cast<double>(statistics.size() - 1);
  const double tail = (1.0 - confidence) / 2;
  const auto low = static_cast<std::size_t>(std::floor(tail * last));
  const auto high = static_cast<std::size_t>(std::ceil((1.0 - tail) * last));
  return {statistics[low], statistics[high]};
}

}  // namespace

double median(std::span<const double> samples) {
  require_samples(samples.size());
  std::vector<double> values(samples.begin(), samples.end());
  return median_in_place(values);
}

double mean(std::span<const double> samples) {
  require_samples(samples.size());
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double location(std::span<const double> samples, Location kind) {
  return kind == Location::Median ? median(samples) : mean(samples);
}

ConfidenceInterval bootstrap_interval(std::span<const double> samples, const BootstrapOptions& options) {
  require_samples(samples.size());
  Random random(options.seed);
  std::vector<double> drawn(samples.size());
  std::vector<double> statistics(std::max(options.resamples, 1u));
  for (double& statistic : statistics) {
    for (double& value : drawn) {
      value = samples[random.below(samples.size())];
    }
    statistic = location_in_place(drawn, options.kind);
  }
  return percentile_interval(statistics, options.confidence);
}

ConfidenceInterval bootstrap_ratio_interval(std::span<const double> a, std::span<const double> b,
                                            const BootstrapOptions& options) {
  require_samples(a.size());
  if (a.size() != b.size()) {
    throw Error(ErrorCode::Internal, "statistics", "a ratio needs samples of the same rounds");
  }
  Random random(options.seed);
  std::vector<double> drawn_a(a.size());
  std::vector<double> drawn_b(b.size());
  std::vector<double> statistics(std::max(options.resamples, 1u));
  for (double& statistic : statistics) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::size_t round = random.below(a.size());
      drawn_a[i] = a[round];
      drawn_b[i] = b[round];
    }
    statistic = location_in_place(drawn_a, options.kind) / location_in_place(drawn_b, options.kind);
  }
  return percentile_interval(statistics, options.confidence);
}

}  // namespace cubind
