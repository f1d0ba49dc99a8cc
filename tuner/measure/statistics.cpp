#include "tuner/measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"

namespace cubind {
namespace {

constexpr double kLeastTimeUs = 1e-6;  // what a timer that ticks reads as 0 still has a ratio

void require_samples(std::size_t count) {
  if (count == 0) {
    throw Error(ErrorCode::Internal, "statistics", "no samples");
  }
}

// Reorders `values`.
double select_median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) {
    return *middle;
  }
  return (*std::ranges::max_element(values.begin(), middle) + *middle) / 2;
}

// The location of values that are drawn from samples. A median is looked up: the samples are ranked once and
// the drawn ones counted by rank, which takes a tenth of the time of ordering each draw.
class DrawnLocation {
 public:
  DrawnLocation(std::span<const double> samples, Location kind)
      : samples_(samples), kind_(kind), sorted_(samples.begin(), samples.end()), ranks_(samples.size()) {
    std::ranges::sort(sorted_);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      ranks_[i] = static_cast<std::size_t>(std::ranges::lower_bound(sorted_, samples[i]) - sorted_.begin());
    }
    counts_.resize(samples.size());
  }

  /// `drawn`: as many indices as there are samples.
  double of(std::span<const std::size_t> drawn) {
    if (kind_ == Location::Mean) {
      return mean_of(drawn);
    }
    std::ranges::fill(counts_, 0);
    for (const std::size_t index : drawn) {
      ++counts_[ranks_[index]];
    }
    const std::size_t middle = drawn.size() / 2;
    const double upper = value_at(middle);
    return drawn.size() % 2 == 1 ? upper : (value_at(middle - 1) + upper) / 2;
  }

 private:
  double mean_of(std::span<const std::size_t> drawn) const {
    double sum = 0;
    for (const std::size_t index : drawn) {
      sum += samples_[index];
    }
    return sum / static_cast<double>(drawn.size());
  }

  double value_at(std::size_t index) const {
    std::size_t rank = 0;
    for (std::size_t before = counts_[0]; before <= index; before += counts_[rank]) {
      ++rank;
    }
    return sorted_[rank];
  }

  std::span<const double> samples_;
  Location kind_;
  std::vector<double> sorted_;
  std::vector<std::size_t> ranks_;   // of each sample
  std::vector<std::size_t> counts_;  // of the draw, by rank
};

void draw(Random& random, std::vector<std::size_t>& indices) {
  for (std::size_t& index : indices) {
    index = random.below(indices.size());
  }
}

void require_pairs(std::span<const double> a, std::span<const double> b) {
  require_samples(a.size());
  if (a.size() != b.size()) {
    throw Error(ErrorCode::Internal, "statistics", "a ratio needs samples of the same rounds");
  }
}

// The quantile of the standard normal distribution, by bisection.
double normal_quantile(double probability) {
  double low = -10, high = 10;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < probability ? low : high) = middle;
  }
  return low;
}

// How many of the ordered means lie outside of Wilcoxon's interval on either side. The signed rank sum is
// taken for normal, which it nearly is from ten rounds on.
std::size_t outside_of_interval(std::size_t rounds, double confidence) {
  const auto n = static_cast<double>(rounds);
  const double deviation = std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
  const double count = n * (n + 1) / 4 - normal_quantile((1 + confidence) / 2) * deviation;
  return count > 0 ? static_cast<std::size_t>(count) : 0;
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
  return select_median(values);
}

double mean(std::span<const double> samples) {
  require_samples(samples.size());
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double trimmed_mean(std::span<const double> samples) {
  require_samples(samples.size());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const std::size_t cut = sorted.size() / 6;
  return mean(std::span(sorted).subspan(cut, sorted.size() - 2 * cut));
}

double location(std::span<const double> samples, Location kind) {
  return kind == Location::Median ? median(samples) : mean(samples);
}

ConfidenceInterval bootstrap_interval(std::span<const double> samples, const BootstrapOptions& options) {
  require_samples(samples.size());
  Random random(options.seed);
  DrawnLocation location(samples, options.kind);
  std::vector<std::size_t> drawn(samples.size());
  std::vector<double> statistics(std::max(options.resamples, 1u));
  for (double& statistic : statistics) {
    draw(random, drawn);
    statistic = location.of(drawn);
  }
  return percentile_interval(statistics, options.confidence);
}

PairedRatio paired_ratio(std::span<const double> a, std::span<const double> b, double confidence) {
  require_pairs(a, b);
  std::vector<double> ratios(a.size());
  std::ranges::transform(a, b, ratios.begin(), [](double of_a, double of_b) {
    return std::max(of_a, kLeastTimeUs) / std::max(of_b, kLeastTimeUs);
  });
  std::vector<double> means;
  means.reserve(a.size() * (a.size() + 1) / 2);
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    for (std::size_t j = i; j < ratios.size(); ++j) {
      means.push_back(std::sqrt(ratios[i] * ratios[j]));
    }
  }
  const auto value_at = [&](std::size_t index) {
    std::ranges::nth_element(means, means.begin() + static_cast<std::ptrdiff_t>(index));
    return means[index];
  };
  const std::size_t outside = outside_of_interval(a.size(), confidence);
  const std::size_t last = means.size() - 1;
  const double ratio = std::sqrt(value_at(last / 2) * value_at(means.size() / 2));
  return {ratio, {value_at(outside), value_at(last - outside)}};
}

}  // namespace cubind
