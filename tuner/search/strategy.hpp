// Chooses the configurations to try next. The only part that knows how to search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/answer.hpp"

namespace cubind {

/// The result of a tried configuration.
struct Observation {
  std::uint64_t number = 0;  // in the ConfigurationSpace
  Outcome outcome = Outcome::Correct;
  std::optional<double> time_us;  // if Correct; absent while the trial is running
};

/// Deterministic: a function of the history and the constructor's arguments. From call to call the history
/// only grows: each call's history begins with the previous one's. Used by one thread at a time.
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// Up to `count` different valid configurations that are not in the history, the most promising first;
  /// fewer only if no more are found. `history` is in the order of the trials, without repetitions.
  virtual std::vector<std::uint64_t> propose(std::span<const Observation> history, std::size_t count) = 0;

  /// A lower bound of the number of first proposals that depend on no result, so that they can be requested
  /// at once.
  virtual std::size_t given() const { return 0; }
};

}  // namespace cubind
