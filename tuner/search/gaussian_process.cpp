#include "tuner/search/gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cubind {
namespace {

constexpr double kNoise = 1e-3;           // variance of a measurement, of the targets' own
constexpr double kLeastVariance = 1e-10;  // below it, rounding is all there is

}  // namespace

GaussianProcess::GaussianProcess(const std::vector<Point>& inputs, const std::vector<double>& targets,
                                 AdditiveKernel kernel)
    : kernel_(std::move(kernel)) {
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
  for (const Point& input : inputs) {
    expect(input);
  }
  solve(std::move(standardized));
}

std::vector<double> GaussianProcess::shared(const Point& input) const {
  std::vector<double> result;
  result.reserve(inputs_.size() + 1);  // expect() adds one
  for (const Point& other : inputs_) {
    result.push_back(kernel_(input, other));
  }
  return result;
}

// Solves with Cholesky's factor: leaves of each covariance what the inputs before it do not explain.
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

void GaussianProcess::expect(const Point& input) {
  std::vector<double> row = shared(input);
  reduce(row);
  double variance = 1 + kNoise;
  for (const double value : row) {
    variance -= value * value;
  }
  row.push_back(std::sqrt(std::max(variance, kLeastVariance)));
  factor_.push_back(std::move(row));
  inputs_.push_back(input);
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

Estimate GaussianProcess::estimate(const Point& input) const {
  std::vector<double> values = shared(input);
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
