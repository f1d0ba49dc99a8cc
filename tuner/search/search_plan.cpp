#include "tuner/search/search_plan.hpp"

#include <algorithm>
#include <utility>

#include "tuner/search/exhaustive_strategy.hpp"
#include "tuner/search/model_strategy.hpp"

namespace cubind {

SearchPlan plan_search(const ConfigurationSpace& space, const SearchBudget& budget) {
  return plan_search(space.size(), space.exact(), budget);
}

std::unique_ptr<Strategy> make_strategy(const SearchPlan& plan, const ConfigurationSpace& space,
                                        std::vector<std::uint64_t> first,
                                        const std::vector<std::uint64_t>& hints, std::uint64_t seed) {
  const std::size_t used = plan.exhaustive ? hints.size() : std::min(hints.size(), kModelHints);
  first.insert(first.end(), hints.begin(), hints.begin() + static_cast<std::ptrdiff_t>(used));
  if (plan.exhaustive) {
    return std::make_unique<ExhaustiveStrategy>(space, std::move(first));
  }
  ModelSettings settings;
  settings.warm = used == kModelHints;
  return std::make_unique<ModelStrategy>(space, std::move(first), seed, settings);
}

}  // namespace cubind
