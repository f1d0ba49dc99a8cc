// How much alike the times of two configurations are expected to be, by the tunables that they share
// (Duvenaud, Nickisch and Rasmussen, "Additive Gaussian Processes", 2011): a time is taken for a sum of
// what single tunables, pairs and threes of them and all of them together do. Two configurations that
// differ in most tunables still tell something about each other.
#pragma once

#include <cstddef>
#include <vector>

#include "tuner/search/coordinates.hpp"

namespace cubind {

/// The share of the variance that is due to each; together 1.
struct Orders {
  double single = 0, pairs = 0, threes = 0, all = 0;
};

/// Immutable: const methods may be called from several threads at once.
class AdditiveKernel {
 public:
  /// The kernel whose length and orders make the targets likeliest. One target per input, at least one. Costs
  /// thirty processes.
  static AdditiveKernel likeliest(const Coordinates& coordinates, const std::vector<Point>& inputs,
                                  const std::vector<double>& targets);

  /// `length`: over which a tunable's effect changes, where its values reach from 0 to 1. There is a tunable
  /// of more than one value.
  AdditiveKernel(const Coordinates& coordinates, double length, const Orders& orders);

  /// A kernel of the same length with other orders.
  AdditiveKernel with(const Orders& orders) const;

  /// The similarity, from 0 to 1; a configuration has 1 with itself.
  double operator()(const Point& one, const Point& other) const;

 private:
  // A Matern 5/2 kernel over the distance of two positions of one tunable.
  struct Table {
    std::size_t axis = 0;
    std::size_t values = 0;
    std::vector<double> alike;
  };

  std::vector<Table> tables_;
  Orders orders_;
};

}  // namespace cubind
