#include "tuner/search/gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace cubind {
namespace {

constexpr double kNoise = 1e-3;                           // variance of a measurement, of the targets' own
constexpr double kLeastVariance = 1e-10;                  // below it, rounding is all there is
constexpr double kScales[] = {0.3, 0.5, 0.8, 1.2, 2, 3};  // lengths that the search for weights begins with
constexpr double kLeastWeight = 1.0 / 32;
constexpr double kMostWeight = 16;
constexpr int kPasses = 2;         // over all coordinates
constexpr double kSurprise = 0.1;  // of a weight of 2 or 1/2; it grows with the logarithm's square

double kernel(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += (a[i] - b[i]) * (a[i] - b[i]);
  }
  const double distance = std::sqrt(5 * squares);
  return (1 + distance + distance * distance / 3) * std::exp(-distance);
}

// Weights that are changed where that makes the targets likelier.
class WeightSearch {
 public:
  using Features = GaussianProcess::Features;

  WeightSearch(const std::vector<Features>& inputs, const std::vector<double>& targets)
      : inputs_(inputs), targets_(targets), weights_(inputs.front().size(), 1) {}

  std::vector<double> run() && {
    for (const double scale : kScales) {
      offer(std::vector<double>(inputs_.front().size(), 1 / scale));
    }
    for (int pass = 0; pass < kPasses; ++pass) {
      for (std::size_t axis = 0; axis < weights_.size(); ++axis) {
        if (!offer_times(axis, 2)) {
          offer_times(axis, 0.5);
        }
      }
    }
    return std::move(weights_);
  }

 private:
  bool offer_times(std::size_t axis, double factor) {
    std::vector<double> weights = weights_;
    weights[axis] = std::clamp(weights[axis] * factor, kLeastWeight, kMostWeight);
    return weights[axis] != weights_[axis] && offer(std::move(weights));
  }

  bool offer(std::vector<double> weights) {
    double likelihood = GaussianProcess(inputs_, targets_, weights).log_likelihood();
    for (const double weight : weights) {
      likelihood -= kSurprise * std::log2(weight) * std::log2(weight);
    }
    if (likelihood <= most_) {
      return false;
    }
    most_ = likelihood;
    weights_ = std::move(weights);
    return true;
  }

  const std::vector<Features>& inputs_;
  const std::vector<double>& targets_;
  std::vector<double> weights_;
  double most_ = -std::numeric_limits<double>::infinity();
};

}  // namespace

GaussianProcess::GaussianProcess(std::vector<Features> inputs, const std::vector<double>& targets,
                                 std::vector<double> weights)
    : weights_of_axes_(std::move(weights)) {
  for (Features& features : inputs) {
    inputs_.push_back(weighted(std::move(features)));
  }
  const auto count = static_cast<double>(targets.size());
  for (const double target : targets) {
    mean_ += target / count;
  }
  double variance = 0;
  for (const double target : targets) {
    variance += (target - mean_) * (target - mean_) / count;
  }
  deviation_ = std::sqrt(std::max(variance, kLeastVariance));
  std::vector<double> standardized;
  for (const double target : targets) {
    standardized.push_back((target - mean_) / deviation_);
  }
  factor();
  solve(std::move(standardized));
}

std::vector<double> GaussianProcess::likeliest_weights(const std::vector<Features>& inputs,
                                                       const std::vector<double>& targets) {
  return WeightSearch(inputs, targets).run();
}

GaussianProcess::Features GaussianProcess::weighted(Features features) const {
  for (std::size_t axis = 0; axis < features.size(); ++axis) {
    features[axis] *= weights_of_axes_[axis];
  }
  return features;
}

// Cholesky's factor of the covariance.
void GaussianProcess::factor() {
  const std::size_t count = inputs_.size();
  factor_.assign(count * count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    double* const row = &factor_[i * count];
    for (std::size_t j = 0; j <= i; ++j) {
      const double* const other = &factor_[j * count];
      double value = kernel(inputs_[i], inputs_[j]) + (i == j ? kNoise : 0);
      for (std::size_t k = 0; k < j; ++k) {
        value -= row[k] * other[k];
      }
      row[j] = i == j ? std::sqrt(std::max(value, kLeastVariance)) : value / other[j];
    }
  }
}

void GaussianProcess::solve(std::vector<double> standardized) {
  const std::size_t count = inputs_.size();
  std::vector<double>& values = standardized;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      values[i] -= factor_[i * count + k] * values[k];
    }
    values[i] /= factor_[i * count + i];
    log_likelihood_ -= values[i] * values[i] / 2 + std::log(factor_[i * count + i]);
  }
  for (std::size_t i = count; i-- > 0;) {
    for (std::size_t k = i + 1; k < count; ++k) {
      values[i] -= factor_[k * count + i] * values[k];
    }
    values[i] /= factor_[i * count + i];
  }
  weights_ = std::move(values);
}

Estimate GaussianProcess::estimate(const Features& features) const {
  const Features place = weighted(features);
  const std::size_t count = inputs_.size();
  std::vector<double> explained(count);
  double mean = 0;
  double variance = 1;
  for (std::size_t i = 0; i < count; ++i) {
    double value = kernel(place, inputs_[i]);
    mean += value * weights_[i];
    for (std::size_t k = 0; k < i; ++k) {
      value -= factor_[i * count + k] * explained[k];
    }
    explained[i] = value / factor_[i * count + i];
    variance -= explained[i] * explained[i];
  }
  return {mean_ + deviation_ * mean, deviation_ * std::sqrt(std::max(variance, kLeastVariance))};
}

}  // namespace cubind
