#include "tuner/search/coordinates.hpp"

#include <algorithm>
#include <cmath>

namespace cubind {
namespace {

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

}  // namespace

Coordinates::Coordinates(const std::vector<Axis>& axes) {
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis].values.size() > 1) {
      std::vector<double> logarithms = logarithms_of(axes[axis].values);
      std::vector<double> scaled = scaled_of(logarithms);
      scales_.push_back({axis, std::move(logarithms), std::move(scaled)});
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

std::vector<double> Coordinates::scaled(const Point& point) const {
  std::vector<double> result;
  result.reserve(scales_.size());
  for (const Scale& scale : scales_) {
    result.push_back(scale.scaled[point[scale.axis]]);
  }
  return result;
}

}  // namespace cubind
