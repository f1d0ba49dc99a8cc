// How much alike the times of two configurations are expected to be (Duvenaud, Nickisch and Rasmussen,
// "Additive Gaussian Processes", 2011): a time is taken for a sum of what single tunables, pairs and threes
// of them and all of them together do. Two configurations that differ in most tunables still tell something
// about each other by those that they share.
#pragma once

#include <cstddef>
#include <cstdint>
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
  /// `length`: over which a tunable's effect changes, where its values reach from 0 to 1. `lines` is not
  /// empty.
  AdditiveKernel(const std::vector<Coordinates::Line>& lines, double length, const Orders& orders);

  /// The same lines and length with other orders.
  AdditiveKernel with(const Orders& orders) const;

  /// From 0 to 1, which is what a configuration has with itself.
  double operator()(const Point& one, const Point& other) const;

 private:
  // Of one tunable: by two positions, a Matern 5/2 kernel over their distance.
  struct Table {
    std::size_t axis = 0;
    std::size_t values = 0;
    std::vector<double> alike;
  };

  std::vector<Table> tables_;
  Orders orders_;
};

}  // namespace cubind
