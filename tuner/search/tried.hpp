// The configurations that are not to be proposed again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>

#include "tuner/search/strategy.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind {

class Tried {
 public:
  explicit Tried(std::span<const Observation> history) {
    for (const Observation& observation : history) {
      numbers_.insert(observation.number);
    }
  }

  bool contains(std::uint64_t number) const { return numbers_.contains(number); }
  /// False where it was there.
  bool add(std::uint64_t number) { return numbers_.insert(number).second; }

 private:
  std::unordered_set<std::uint64_t> numbers_;
};

}  // namespace cubind
