// Which configurations are tried next. The only part that knows how to search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tuner/plan/answer.hpp"

namespace cubind {

/// What became of a configuration that was tried.
struct Observation {
  std::uint64_t number = 0;  // in the ConfigurationSpace
  Outcome outcome = Outcome::Correct;
  std::optional<double> time_us;  // of one that is Correct; absent while its trial is under way
};

/// Deterministic: a function of the history and of what the strategy was made with. The histories of one
/// strategy's calls grow: each has the configurations of those before it, in their order. Used by one thread
/// at a time.
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// Up to `count` valid configurations, the most promising first, none of them in the history (each at most
  /// once there) and each once; fewer only where no more are found. `history` is in the order of the trials.
  virtual std::vector<std::uint64_t> propose(std::span<const Observation> history, std::size_t count) = 0;

  /// The number of first proposals that depend on no result, at least, so that they can be asked for at once.
  virtual std::size_t given() const { return 0; }
};

}  // namespace cubind
