// How a space is searched under a budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tuner/plan/search.hpp"
#include "tuner/search/strategy.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind {

/// So many proposals are under way while a model is asked for the next: the compilers have work, and the model
/// does without the latest times. Not a number of the machine's, because the search depends on it.
inline constexpr std::size_t kModelAhead = 8;

struct SearchPlan {
  bool exhaustive = true;
  std::uint64_t trials = 0;  // about so many configurations will be tried; 0: nobody knows
  std::uint64_t limit = 0;   // on the trials; 0: none
};

/// Exhaustive where the space has at most as many configurations as the budget has trials (kExhaustiveLimit
/// where no budget is given) and no time is set; else by a model, until the trials or the time are used up.
SearchPlan plan_search(const ConfigurationSpace& space, const SearchBudget& budget);

/// `first`: valid configurations that are likely to be fast. The space must outlive the strategy.
std::unique_ptr<Strategy> make_strategy(const SearchPlan& plan, const ConfigurationSpace& space,
                                        std::vector<std::uint64_t> first, std::uint64_t seed);

}  // namespace cubind
