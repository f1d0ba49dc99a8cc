// Measures which tunables matter: how much of the difference between the timed configurations each explains
// by itself.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "plan/problem.hpp"

namespace cubind {

struct TimedConfiguration {
  const Configuration* configuration = nullptr;
  double time_us = 0;  // above 0
};

struct TunableEffect {
  std::string name;
  /// The share of the variance of the logarithms of the times, minus the share that as many values would
  /// explain by chance (epsilon squared of a one-way analysis of variance): 0 to 1. Two tunables that only
  /// matter together each explain little.
  double explained = 0;
  std::size_t values = 0;        // that were timed
  std::int64_t best_value = 0;   // with the lowest mean time
  std::int64_t worst_value = 0;  // with the highest
  double worst_over_best = 1;    // of their mean times (geometric)
};

/// The effects of the tunables with at least two values among the timed, the largest first. All
/// configurations have the same tunables.
std::vector<TunableEffect> tunable_effects(std::span<const TimedConfiguration> timed);

}  // namespace cubind
