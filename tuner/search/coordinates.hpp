// Where a configuration lies, for the models: tunables of more than one value as real numbers.
#pragma once

#include <vector>

#include "tuner/space/configuration_space.hpp"

namespace cubind {

/// A coordinate for each tunable of more than one value, and behind them one for each of these that has both
/// round values and others: whether its value is round, that is zero or a power of two. Threads and tiles of
/// round sizes fill warps, banks and cache lines, whatever the size. Immutable: const methods may be called
/// from several threads at once.
class Coordinates {
 public:
  /// One coordinate: of which tunable, and its values by their positions in the tunable's list.
  struct Scale {
    std::size_t axis = 0;
    std::vector<double> logarithms;
    // From 0 to 1: halfway between how far along the list of values it is and how far along the logarithms.
    // Lists are often neither. Round is 1/16, else 0.
    std::vector<double> scaled;
  };

  explicit Coordinates(const std::vector<Axis>& axes);

  /// Those of the tunables in their order, then those of roundness.
  const std::vector<Scale>& scales() const { return scales_; }

  /// The logarithm of each value, so that a sum is the logarithm of a product. Of an axis with a 0 that of
  /// the value plus one, of an axis with negative values the value. Round is 1, else 0.
  std::vector<double> logarithms(const Point& point) const;

 private:
  std::vector<Scale> scales_;
};

}  // namespace cubind
