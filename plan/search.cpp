#include "plan/search.hpp"

#include <algorithm>

namespace cubind {

std::uint64_t trials_of(const SearchBudget& budget) {
  return budget.said() ? budget.max_trials : kDefaultTrials;
}

SearchPlan plan_search(std::uint64_t valid, bool exact, const SearchBudget& budget) {
  const std::uint64_t whole = budget.said() ? budget.max_trials : kExhaustiveLimit;
  if (exact && budget.max_seconds == 0 && valid <= whole) {
    return {true, valid, 0};
  }
  const std::uint64_t limit = trials_of(budget);
  return {false, std::min(limit, valid), limit};
}

bool covers(const SearchSummary& done, const SearchBudget& asked) {
  if (done.complete()) {
    return true;
  }
  if (done.strategy() != kModelSearch) {
    return false;
  }
  const std::uint64_t trials = trials_of(asked);
  return (trials > 0 && done.trials() >= trials) ||
         (asked.max_seconds > 0 && done.seconds() >= asked.max_seconds);
}

bool allows_as_much(const SearchBudget& a, const SearchBudget& b) {
  const std::uint64_t trials_a = trials_of(a), trials_b = trials_of(b);
  const bool trials = trials_a == 0 || (trials_b > 0 && trials_a >= trials_b);
  const bool seconds = a.max_seconds == 0 || (b.max_seconds > 0 && a.max_seconds >= b.max_seconds);
  return trials && seconds;
}

}  // namespace cubind
