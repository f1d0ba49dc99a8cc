#include "tuner/search/gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace cubind {
namespace {

constexpr double kNoise = 1e-3;           // variance of a measurement, of the targets' own
constexpr double kLeastVariance = 1e-10;  // below it, rounding is all there is

}  // namespace

GaussianProcess::GaussianProcess(std::vector<Features> inputs, const std::vector<double>& targets,
                                 double scale)
    : inputs_(std::move(inputs)), scale_(scale) {
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

double GaussianProcess::likeliest_scale(const std::vector<Features>& inputs,
                                        const std::vector<double>& targets,
                                        const std::vector<double>& scales) {
  double best = scales.front();
  double most = -std::numeric_limits<double>::infinity();
  for (const double scale : scales) {
    const double likelihood = GaussianProcess(inputs, targets, scale).log_likelihood();
    if (likelihood > most) {
      most = likelihood;
      best = scale;
    }
  }
  return best;
}

double GaussianProcess::kernel(const Features& a, const Features& b) const {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += (a[i] - b[i]) * (a[i] - b[i]);
  }
  const double distance = std::sqrt(5 * squares) / scale_;
  return (1 + distance + distance * distance / 3) * std::exp(-distance);
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
  const std::size_t count = inputs_.size();
  std::vector<double> explained(count);
  double mean = 0;
  double variance = 1;
  for (std::size_t i = 0; i < count; ++i) {
    double value = kernel(features, inputs_[i]);
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
