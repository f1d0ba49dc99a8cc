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
  for (Features& features : inputs) {
    expect(std::move(features));
  }
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

std::vector<double> GaussianProcess::shared(const Features& place) const {
  std::vector<double> result;
  result.reserve(inputs_.size() + 1);  // expect() adds one
  for (const Features& input : inputs_) {
    result.push_back(kernel(place, input));
  }
  return result;
}

// By Cholesky's factor: of each input the part of what is shared with it that no input before it has told.
void GaussianProcess::reduce(std::vector<double>& shared) const {
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const double* const row = factor_[i].data();
    double value = shared[i];
    for (std::size_t k = 0; k < i; ++k) {
      value -= row[k] * shared[k];
    }
    shared[i] = value / row[i];
  }
}

void GaussianProcess::expect(Features features) {
  Features place = weighted(std::move(features));
  std::vector<double> row = shared(place);
  reduce(row);
  double variance = 1 + kNoise;
  for (const double value : row) {
    variance -= value * value;
  }
  row.push_back(std::sqrt(std::max(variance, kLeastVariance)));
  factor_.push_back(std::move(row));
  inputs_.push_back(std::move(place));
}

void GaussianProcess::solve(std::vector<double> standardized) {
  std::vector<double>& values = standardized;
  reduce(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    log_likelihood_ -= values[i] * values[i] / 2 + std::log(factor_[i][i]);
  }
  for (std::size_t i = values.size(); i-- > 0;) {
    values[i] /= factor_[i][i];
    for (std::size_t k = 0; k < i; ++k) {
      values[k] -= factor_[i][k] * values[i];
    }
  }
  weights_ = std::move(values);
}

Estimate GaussianProcess::estimate(const Features& features) const {
  std::vector<double> values = shared(weighted(features));
  double mean = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {  // of what is expected, only the place is known
    mean += weights_[i] * values[i];
  }
  reduce(values);
  double variance = 1;
  for (const double value : values) {
    variance -= value * value;
  }
  return {mean_ + deviation_ * mean, deviation_ * std::sqrt(std::max(variance, kLeastVariance))};
}

}  // namespace cubind
