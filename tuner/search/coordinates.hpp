// Where a configuration lies, for the models: tunables of more than one value as real numbers.
#pragma once

#include <vector>

#include "tuner/space/configuration_space.hpp"

namespace cubind {

/// Of the tunables of more than one value. A value is round where it is zero or a power of two: threads and
/// tiles of round sizes fill warps, banks and cache lines, whatever the size. Immutable: const methods may be
/// called from several threads at once.
class Coordinates {
 public:
  /// Where each value of a tunable lies, by its position in the list.
  struct Line {
    std::size_t axis = 0;
    std::vector<double> logarithms;
    /// From 0 to 1: halfway between how far along the list of values it is and how far along the logarithms.
    /// Lists are often neither.
    std::vector<double> scaled;
    std::vector<double> round;  // 1, else 0; empty where all values are round or none is
  };

  explicit Coordinates(const std::vector<Axis>& axes);

  const std::vector<Line>& lines() const { return lines_; }

  /// The logarithm of each value, so that a sum is the logarithm of a product. Of an axis with a 0 that of
  /// the value plus one, of an axis with negative values the value. Behind them for each tunable that has
  /// both round values and others 1 for a round one, else 0.
  std::vector<double> logarithms(const Point& point) const;

 private:
  std::vector<Line> lines_;
};

}  // namespace cubind
