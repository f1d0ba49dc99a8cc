// Searches large spaces by what models expect of the configurations that were not tried.
#pragma once

#include "tuner/search/coordinates.hpp"
#include "tuner/search/extra_trees.hpp"
#include "tuner/search/strategy.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind {

/// The same for every kernel. Chosen on the recorded spaces that `bench/search` replays.
struct ModelSettings {
  std::size_t initial = 10;  // tried before a model is asked
  std::size_t drawn = 300;   // candidates drawn from the whole space
  std::size_t elite = 5;     // of the fastest so many all neighbours are candidates too
  ExtraTreesSettings trees = {};
  std::size_t process_points = 256;  // the Gaussian process sees the fastest: its cost grows with their cube
  std::vector<double> length_scales = {0.3, 0.5, 0.8, 1.2, 2, 3};  // of the process, the likeliest is taken
  double temperature = 0.1;   // a loss of share by which a configuration is e times less often stepped from
  double single_steps = 0.2;  // share of the steps along one axis
};

/// A configuration's worth is its share of the fastest one's speed. Three ways of choosing take turns: the
/// greatest improvement that trees expect, times the chance that the candidate does not fail, which trees
/// estimate from the failures; the same by a Gaussian process; and a random step from a fast configuration.
/// They err in different places: trees find what only some values of several tunables together give, a smooth
/// surface finds the best of a long list of sizes, and a step finds what no model expects.
class ModelStrategy : public Strategy {
 public:
  /// Proposes `first` first (default, winners of neighbouring problems: valid configurations). The
  /// space must outlive it.
  ModelStrategy(const ConfigurationSpace& space, std::vector<std::uint64_t> first, std::uint64_t seed,
                ModelSettings settings = {});

  std::vector<std::uint64_t> propose(std::span<const Observation> history, std::size_t count) override;

 private:
  friend class Proposal;

  const ConfigurationSpace& space_;
  const Coordinates coordinates_;
  const std::vector<std::uint64_t> first_;
  const std::uint64_t seed_;
  const ModelSettings settings_;
};

}  // namespace cubind
