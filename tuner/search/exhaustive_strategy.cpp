#include "tuner/search/exhaustive_strategy.hpp"

#include <utility>

#include "tuner/search/tried.hpp"

namespace cubind {

ExhaustiveStrategy::ExhaustiveStrategy(const ConfigurationSpace& space, std::vector<std::uint64_t> first)
    : space_(space), first_(std::move(first)) {}

std::vector<std::uint64_t> ExhaustiveStrategy::propose(std::span<const Observation> history,
                                                       std::size_t count) const {
  Tried tried(history);
  std::vector<std::uint64_t> proposed;
  const auto take = [&](std::uint64_t number) {
    if (proposed.size() < count && tried.add(number)) {
      proposed.push_back(number);
    }
  };
  for (const std::uint64_t number : first_) {
    take(number);
  }
  for (std::uint64_t number = 0; number < space_.size() && proposed.size() < count; ++number) {
    if (!tried.contains(number) && space_.valid(number)) {
      take(number);
    }
  }
  return proposed;
}

}  // namespace cubind
