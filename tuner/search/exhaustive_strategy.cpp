#include "tuner/search/exhaustive_strategy.hpp"

#include <unordered_set>
#include <utility>

namespace cubind {

ExhaustiveStrategy::ExhaustiveStrategy(const ConfigurationSpace& space, std::vector<std::uint64_t> first)
    : space_(space), first_(std::move(first)) {}

std::vector<std::uint64_t> ExhaustiveStrategy::propose(std::span<const Observation> history,
                                                       std::size_t count) {
  tried_.follow(history);
  while (position_ < space_.size() && (tried_.contains(position_) || !space_.valid(position_))) {
    ++position_;
  }
  std::vector<std::uint64_t> proposed;
  std::unordered_set<std::uint64_t> now;
  const auto take = [&](std::uint64_t number) {
    if (proposed.size() < count && !tried_.contains(number) && now.insert(number).second) {
      proposed.push_back(number);
    }
  };
  for (const std::uint64_t number : first_) {
    take(number);
  }
  for (std::uint64_t number = position_; number < space_.size() && proposed.size() < count; ++number) {
    if (space_.valid(number)) {
      take(number);
    }
  }
  return proposed;
}

}  // namespace cubind
