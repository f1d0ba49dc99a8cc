#include "tuner/search/coordinates.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

namespace cubind {
namespace {

constexpr double kScaledRoundness = 1.0 / 16;

std::vector<double> logarithms_of(const std::vector<std::int64_t>& values) {
  const std::int64_t least = *std::min_element(values.begin(), values.end());
  std::vector<double> result;
  for (const std::int64_t value : values) {
    const auto real = static_cast<double>(value);
    result.push_back(least > 0 ? std::log2(real) : least == 0 ? std::log2(1 + real) : real);
  }
  return result;
}

std::vector<double> scaled_of(const std::vector<double>& logarithms) {
  const auto [least, most] = std::minmax_element(logarithms.begin(), logarithms.end());
  std::vector<double> result;
  for (std::size_t position = 0; position < logarithms.size(); ++position) {
    const double along_list = static_cast<double>(position) / static_cast<double>(logarithms.size() - 1);
    result.push_back((along_list + (logarithms[position] - *least) / (*most - *least)) / 2);
  }
  return result;
}

// 1 for zero and powers of two of either sign, else 0.
std::vector<double> roundness_of(const std::vector<std::int64_t>& values) {
  std::vector<double> result;
  for (const std::int64_t value : values) {
    const std::uint64_t size = value < 0 ? 0 - static_cast<std::uint64_t>(value) : std::uint64_t(value);
    result.push_back(size == 0 || std::has_single_bit(size) ? 1 : 0);
  }
  return result;
}

}  // namespace

Coordinates::Coordinates(const std::vector<Axis>& axes) {
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis].values.size() > 1) {
      std::vector<double> logarithms = logarithms_of(axes[axis].values);
      std::vector<double> scaled = scaled_of(logarithms);
      scales_.push_back({axis, std::move(logarithms), std::move(scaled)});
    }
  }
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const std::vector<double> roundness = roundness_of(axes[axis].values);
    if (std::ranges::adjacent_find(roundness, std::ranges::not_equal_to{}) != roundness.end()) {
      std::vector<double> scaled;
      for (const double round : roundness) {
        scaled.push_back(kScaledRoundness * round);
      }
      scales_.push_back({axis, roundness, std::move(scaled)});
    }
  }
}

std::vector<double> Coordinates::logarithms(const Point& point) const {
  std::vector<double> result;
  result.reserve(scales_.size());
  for (const Scale& scale : scales_) {
    result.push_back(scale.logarithms[point[scale.axis]]);
  }
  return result;
}

}  // namespace cubind
