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

/// Settings for every kernel, chosen on the recorded spaces that `bench/search` replays.
struct ModelSettings {
  std::size_t initial = 10;  // tried before a model is asked
  std::size_t drawn = 300;   // candidates drawn from the whole space
  std::size_t elite = 5;     // of the fastest so many all neighbours are candidates too
  // For the first trials few proposals are the trees', a candidate is to exceed the fastest one's speed by
  // one of these shares, in turn, and the trees' deviation is multiplied. Looking for the next percent alone
  // never leaves a plateau, and few trials do not show the trees how little they know. Then the best of what
  // was found counts.
  std::size_t bold = 100;
  std::size_t trees_every = 6;
  std::array<double, 3> margins = {0, 0.15, 0.3};
  double trees_doubt = 2;
  ExtraTreesSettings trees = {};
  // It begins with much that was best elsewhere: up to this trial there is no margin.
  bool warm = false;
  std::size_t careful = 50;
  // The process sees so many of the fastest, its kernel is found with so many: its cost grows with their
  // cube.
  std::size_t process_points = 128;
  std::size_t kernel_points = 96;
};

/// A configuration's worth is its share of the fastest one's speed. Trees and a Gaussian process take
/// turns. Each proposes the candidate of the greatest improvement that it expects, times the chance that
/// the candidate does not fail, which trees estimate from the failures. They err in different places: trees
/// find what only some values of several tunables together give; the process, over the logarithms of the
/// shares, tells which tunables matter. It expects what is under way, so that what is tried at the same time
/// lies apart.
class ModelStrategy : public Strategy {
 public:
  /// Proposes `first` first (default, winners of neighbouring problems: valid configurations), then the
  /// configuration in the middle of the space. The space must outlive it.
  ModelStrategy(const ConfigurationSpace& space, std::vector<std::uint64_t> first, std::uint64_t seed,
                ModelSettings settings = {});

  std::vector<std::uint64_t> propose(std::span<const Observation> history, std::size_t count) override;
  std::size_t given() const override { return first_.size(); }

 private:
  friend class Proposal;

  const ConfigurationSpace& space_;
  const Coordinates coordinates_;
  const std::vector<std::uint64_t> first_;
  const std::uint64_t seed_;
  const ModelSettings settings_;

  // The process's kernel by the first so many trials: a function of them, kept because it is dear.
  struct Kept {
    std::size_t trials = 0;
    AdditiveKernel kernel;
  };
  std::optional<Kept> kept_;
};

}  // namespace cubind
