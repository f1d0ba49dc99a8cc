// How a space is searched under a budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan/search.hpp"
#include "tuner/search/strategy.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind {

/// So many proposals are under way while a model is asked for the next: the compilers have work, and the
/// model does without the latest times. Not a number of the machine's, because the search depends on it.
inline constexpr std::size_t kModelAhead = 8;

/// The plan for the space as it was counted.
SearchPlan plan_search(const ConfigurationSpace& space, const SearchBudget& budget);

/// The number of hints that a model tries first. The other half of its first thirty trials is its own.
inline constexpr std::size_t kModelHints = 16;

/// `first`: what is tried before all else. `hints`: what was best elsewhere, the most promising first. Both
/// are valid configurations. The space must outlive the strategy.
std::unique_ptr<Strategy> make_strategy(const SearchPlan& plan, const ConfigurationSpace& space,
                                        std::vector<std::uint64_t> first,
                                        const std::vector<std::uint64_t>& hints, std::uint64_t seed);

}  // namespace cubind
