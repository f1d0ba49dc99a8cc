#include "tuner/search/search_plan.hpp"

#include <utility>

#include "tuner/search/exhaustive_strategy.hpp"
#include "tuner/search/model_strategy.hpp"

namespace cubind {

SearchPlan plan_search(const ConfigurationSpace& space, const SearchBudget& budget) {
  const std::uint64_t whole = budget.said() ? budget.max_trials : kExhaustiveLimit;
  if (space.exact() && budget.max_seconds == 0 && space.count() <= whole) {
    return {true, space.count(), 0};
  }
  const std::uint64_t limit = trials_of(budget);
  const bool runs_dry = space.exact() && (limit == 0 || space.count() < limit);
  return {false, runs_dry && budget.max_seconds == 0 ? space.count() : limit, limit};
}

std::unique_ptr<Strategy> make_strategy(const SearchPlan& plan, const ConfigurationSpace& space,
                                        std::vector<std::uint64_t> first, std::uint64_t seed) {
  if (plan.exhaustive) {
    return std::make_unique<ExhaustiveStrategy>(space, std::move(first));
  }
  return std::make_unique<ModelStrategy>(space, std::move(first), seed);
}

}  // namespace cubind
