#include "tuner/search/search_plan.hpp"

#include <utility>

#include "tuner/search/exhaustive_strategy.hpp"
#include "tuner/search/model_strategy.hpp"

namespace cubind {

SearchPlan plan_search(const ConfigurationSpace& space, const SearchBudget& budget) {
  return plan_search(space.size(), space.exact(), budget);
}

std::unique_ptr<Strategy> make_strategy(const SearchPlan& plan, const ConfigurationSpace& space,
                                        std::vector<std::uint64_t> first, std::uint64_t seed) {
  if (plan.exhaustive) {
    return std::make_unique<ExhaustiveStrategy>(space, std::move(first));
  }
  return std::make_unique<ModelStrategy>(space, std::move(first), seed);
}

}  // namespace cubind
