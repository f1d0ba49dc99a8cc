// Searches large spaces by what models expect of the configurations that were not tried.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tuner/search/additive_kernel.hpp"
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
  // By how much of the fastest one's speed a candidate is to exceed it, in turn: a search that is content
  // with the last percent never leaves a plateau, one that is not does not find it.
  std::array<double, 3> margins = {0, 0.15, 0.3};
  // What the deviations of the models and of their mean are multiplied by: from few trials a model cannot
  // tell how little it knows.
  double process_doubt = 1.5;
  double trees_doubt = 2;
  double mean_doubt = 1.5;
  ExtraTreesSettings trees = {};
  // The Gaussian process sees so many of the fastest, its kernel is chosen by so many: its cost grows with
  // their cube.
  std::size_t process_points = 128;
  std::size_t kernel_points = 96;
  std::size_t kernel_every = 8;  // trials: then the kernel is chosen anew
};

/// A configuration's worth is its share of the fastest one's speed. Two models and their mean take turns.
/// Each proposes the candidate of the greatest improvement that it expects, times the chance that the
/// candidate does not fail, which trees estimate from the failures. The models err in different places: trees
/// find what only some values of several tunables together give; a Gaussian process, over the logarithms of
/// the shares, finds the best of a long list of sizes, and what single tunables do; where they disagree,
/// their mean is unsure.
class ModelStrategy : public Strategy {
 public:
  /// Proposes `first` first (default, winners of neighbouring problems: valid configurations), then the
  /// configuration in the middle of the space. The space must outlive it.
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

  // Of the process, by the first so many trials: a function of them, kept because it is dear.
  struct Chosen {
    std::size_t trials = 0;
    AdditiveKernel kernel;
  };
  std::optional<Chosen> chosen_;
};

}  // namespace cubind
