// Random matrices and numerical gradients for the formulas of reference kernels.
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <functional>
#include <random>
#include <vector>

namespace cubind::test {

using Values = std::vector<double>;

inline Values normal_values(std::size_t count, unsigned int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Values values(count);
  for (double& value : values) {
    value = normal(random);
  }
  return values;
}

/// The derivatives of `loss` by each of `at`, by central differences.
inline Values numerical_gradient(const std::function<double(const Values&)>& loss, Values at) {
  constexpr double kStep = 1e-5;
  Values gradient(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double middle = at[i];
    at[i] = middle + kStep;
    const double above = loss(at);
    at[i] = middle - kStep;
    gradient[i] = (above - loss(at)) / (2 * kStep);
    at[i] = middle;
  }
  return gradient;
}

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/// References store float32.
inline void check_close(const Values& found, const Values& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-6).margin(2e-6));
  }
}

}  // namespace cubind::test
