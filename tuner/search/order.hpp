// The order in which configurations are tried: likely winners first, because everything after them is judged
// against the best so far and stops early.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tuner/plan/problem.hpp"

namespace cubind {

struct SearchHints {
  std::optional<Configuration> incumbent;  // the measured winner so far
  std::optional<Configuration> preset;     // of the spec, for this problem
  std::vector<Configuration> neighbours;   // winners of neighbouring problems, nearest first
};

/// Indices into `valid`: incumbent, default, neighbours' winners, then the rest as they stand. Each once;
/// hints that are not valid here are skipped.
std::vector<std::size_t> search_order(const std::vector<Configuration>& valid, const SearchHints& hints);

}  // namespace cubind
