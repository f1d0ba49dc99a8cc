#include "tuner/plan/search.hpp"

namespace cubind {

std::uint64_t trials_of(const SearchBudget& budget) {
  return budget.said() ? budget.max_trials : kDefaultTrials;
}

bool covers(const SearchSummary& done, const SearchBudget& asked) {
  if (done.complete) {
    return true;
  }
  if (done.strategy != kModelSearch) {
    return false;
  }
  const std::uint64_t trials = trials_of(asked);
  return (trials > 0 && done.trials >= trials) ||
         (asked.max_seconds > 0 && done.seconds >= asked.max_seconds);
}

bool allows_as_much(const SearchBudget& a, const SearchBudget& b) {
  const std::uint64_t trials_a = trials_of(a), trials_b = trials_of(b);
  const bool trials = trials_a == 0 || (trials_b > 0 && trials_a >= trials_b);
  const bool seconds = a.max_seconds == 0 || (b.max_seconds > 0 && a.max_seconds >= b.max_seconds);
  return trials && seconds;
}

}  // namespace cubind
