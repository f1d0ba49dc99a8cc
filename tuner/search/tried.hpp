// The configurations that must not be proposed again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>

#include "tuner/search/strategy.hpp"
#include "tuner/space/configuration_space.hpp"

namespace cubind {

class Tried {
 public:
  Tried() = default;
  explicit Tried(std::span<const Observation> history) { follow(history); }

  /// Adds the new entries of a history that has grown since the last call.
  void follow(std::span<const Observation> history) {
    for (; followed_ < history.size(); ++followed_) {
      numbers_.insert(history[followed_].number);
    }
  }

  bool contains(std::uint64_t number) const { return numbers_.contains(number); }
  /// Returns false if the configuration was already in the set.
  bool add(std::uint64_t number) { return numbers_.insert(number).second; }

 private:
  std::unordered_set<std::uint64_t> numbers_;
  std::size_t followed_ = 0;
};

}  // namespace cubind
