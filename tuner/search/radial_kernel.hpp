// How much alike the times of two configurations are expected to be, by how far apart they lie: a Matern 5/2
// kernel, which makes smooth surfaces. Only neighbours tell something about each other.
#pragma once

#include <cstddef>
#include <vector>

#include "tuner/search/coordinates.hpp"

namespace cubind {

/// Immutable: const methods may be called from several threads at once.
class RadialKernel {
 public:
  using Input = std::vector<double>;

  static constexpr std::size_t kTrialsKept = 8;  // for so many more a likeliest kernel is kept: it is dear

  static Input input(const Coordinates& coordinates, const Point& point) { return coordinates.scaled(point); }

  /// The weights by which the targets are likeliest, where weights of 1 are likelier beforehand and each step
  /// to the double or the half less so: one tunable is decisive, another has no effect. A target for each
  /// input; neither is empty. Costs some forty processes.
  static RadialKernel likeliest(const Coordinates& coordinates, const std::vector<Input>& inputs,
                                const std::vector<double>& targets);

  /// A weight for each coordinate: over its inverse a time changes.
  explicit RadialKernel(std::vector<double> weights);

  /// Where an input lies for operator().
  Input place(Input input) const;
  /// The similarity, from 0 to 1; a place has 1 with itself.
  double operator()(const Input& one, const Input& other) const;

  const std::vector<double>& weights() const { return weights_; }

 private:
  std::vector<double> weights_;
};

}  // namespace cubind
