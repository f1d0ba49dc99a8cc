#include "tuner/search/gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cubind {
namespace {

constexpr double kNoise = 1e-3;           // variance of a measurement, of the targets' own
constexpr double kLeastVariance = 1e-10;  // below it, rounding is all there is

}  // namespace

template <typename Kernel>
GaussianProcess<Kernel>::GaussianProcess(const std::vector<Input>& inputs, const std::vector<double>& targets,
                                         Kernel kernel)
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
  for (const Input& input : inputs) {
    expect(input);
  }
  solve(std::move(standardized));
}

template <typename Kernel>
std::vector<double> GaussianProcess<Kernel>::shared(const Input& place) const {
  std::vector<double> result;
  result.reserve(places_.size() + 1);  // expect() adds one
  for (const Input& other : places_) {
    result.push_back(kernel_(place, other));
  }
  return result;
}

// Solves with Cholesky's factor: leaves of each covariance what the inputs before it do not explain.
template <typename Kernel>
void GaussianProcess<Kernel>::reduce(std::vector<double>& shared) const {
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const double* const row = factor_[i].data();
    double value = shared[i];
    for (std::size_t k = 0; k < i; ++k) {
      value -= row[k] * shared[k];
    }
    shared[i] = value / row[i];
  }
}

template <typename Kernel>
void GaussianProcess<Kernel>::expect(const Input& input) {
  Input place = kernel_.place(input);
  std::vector<double> row = shared(place);
  reduce(row);
  double variance = 1 + kNoise;
  for (const double value : row) {
    variance -= value * value;
  }
  row.push_back(std::sqrt(std::max(variance, kLeastVariance)));
  factor_.push_back(std::move(row));
  places_.push_back(std::move(place));
}

template <typename Kernel>
void GaussianProcess<Kernel>::solve(std::vector<double> standardized) {
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

template <typename Kernel>
Estimate GaussianProcess<Kernel>::estimate(const Input& input) const {
  std::vector<double> values = shared(kernel_.place(input));
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

template class GaussianProcess<RadialKernel>;
template class GaussianProcess<AdditiveKernel>;

}  // namespace cubind
