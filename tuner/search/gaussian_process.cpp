#include "tuner/search/gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace cubind {
namespace {

constexpr double kNoise = 1e-3;                            // variance of a measurement, of the targets' own
constexpr double kLeastVariance = 1e-10;                   // below it, rounding is all there is
constexpr double kLengths[] = {0.3, 0.5, 0.8, 1.2, 2, 3};  // of a tunable's whole list
// From tunables that act on their own to what only all of them together give.
constexpr Orders kOrders[] = {
    {0.5, 0.5, 0, 0}, {0.2, 0.8, 0, 0}, {0.1, 0.4, 0.5, 0}, {0.3, 0.3, 0.3, 0.1}, {0, 0.1, 0.3, 0.6}};

}  // namespace

AdditiveKernel GaussianProcess::likeliest_kernel(const std::vector<Coordinates::Line>& lines,
                                                 const std::vector<Point>& inputs,
                                                 const std::vector<double>& targets) {
  std::optional<AdditiveKernel> likeliest;
  double most = -std::numeric_limits<double>::infinity();
  for (const double length : kLengths) {
    const AdditiveKernel of_length(lines, length, {});
    for (const Orders& orders : kOrders) {
      AdditiveKernel kernel = of_length.with(orders);
      const double likelihood = GaussianProcess(inputs, targets, kernel).log_likelihood();
      if (!likeliest || likelihood > most) {
        most = likelihood;
        likeliest = std::move(kernel);
      }
    }
  }
  return std::move(*likeliest);
}

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

std::vector<double> GaussianProcess::shared(const Point& point) const {
  std::vector<double> result;
  result.reserve(inputs_.size());
  for (const Point& input : inputs_) {
    result.push_back(kernel_(point, input));
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
  const std::size_t count = inputs_.size();
  std::vector<double>& values = standardized;
  reduce(values);
  for (std::size_t i = 0; i < count; ++i) {
    log_likelihood_ -= values[i] * values[i] / 2 + std::log(factor_[i][i]);
  }
  for (std::size_t i = count; i-- > 0;) {
    values[i] /= factor_[i][i];
    for (std::size_t k = 0; k < i; ++k) {
      values[k] -= factor_[i][k] * values[i];
    }
  }
  weights_ = std::move(values);
}

Estimate GaussianProcess::estimate(const Point& point) const {
  std::vector<double> values = shared(point);
  const double mean =
      std::inner_product(weights_.begin(), weights_.end(), values.begin(), 0.0);  // `values` may be longer
  reduce(values);
  double variance = 1;
  for (const double value : values) {
    variance -= value * value;
  }
  return {mean_ + deviation_ * mean, deviation_ * std::sqrt(std::max(variance, kLeastVariance))};
}

}  // namespace cubind
