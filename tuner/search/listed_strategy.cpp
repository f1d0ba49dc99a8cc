#include "tuner/search/listed_strategy.hpp"

#include <algorithm>
#include <utility>

namespace cubind {

ListedStrategy::ListedStrategy(std::vector<std::uint64_t> numbers) : numbers_(std::move(numbers)) {}

std::vector<std::uint64_t> ListedStrategy::propose(std::span<const Observation> history, std::size_t count) {
  tried_.follow(history);
  std::vector<std::uint64_t> proposed;
  for (const std::uint64_t number : numbers_) {
    const bool is_new = !tried_.contains(number) && std::ranges::find(proposed, number) == proposed.end();
    if (is_new && proposed.size() < count) {
      proposed.push_back(number);
    }
  }
  return proposed;
}

}  // namespace cubind
