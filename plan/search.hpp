// How much of a space a tuning job tries, and what it has tried for its winner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "schemas/facts.pb.h"

namespace cubind {

/// A space of at most so many valid configurations is tried as a whole, unless the budget is smaller.
inline constexpr std::uint64_t kExhaustiveLimit = 600;
/// Trials of a larger space, where no budget is given.
inline constexpr std::uint64_t kDefaultTrials = 300;
inline constexpr std::uint64_t kMostTrials = 100'000;
inline constexpr double kMostSeconds = 7 * 24 * 3600;

inline constexpr std::string_view kExhaustiveSearch = "exhaustive";
/// The number grows with every change of what the strategy proposes: a search by an older version is done
/// again.
inline constexpr std::string_view kModelSearch = "model/7";
/// No search: the winner was chosen among configurations that the job had listed.
inline constexpr std::string_view kListed = "listed";

/// What a caller allows a search to cost.
struct SearchBudget {
  std::uint64_t max_trials = 0;  // configurations that are tried; 0: not said
  double max_seconds = 0;        // after which no further one is begun; 0: not said

  bool said() const { return max_trials > 0 || max_seconds > 0; }
  bool operator==(const SearchBudget&) const = default;
};

/// The trials that the budget comes to in a space that is not tried as a whole; 0: no limit.
std::uint64_t trials_of(const SearchBudget& budget);

/// What a search of one space comes to.
struct SearchPlan {
  bool exhaustive = true;
  std::uint64_t trials = 0;  // at most so many configurations will be tried; 0: as many as the time allows
  std::uint64_t limit = 0;   // on the trials; 0: none
};

/// Exhaustive where the space has at most as many configurations as the budget has trials (kExhaustiveLimit
/// where no budget is given) and no time is set; else by a model, until the trials or the time are used up.
/// `valid`: configurations; an upper bound unless `exact`.
SearchPlan plan_search(std::uint64_t valid, bool exact, const SearchBudget& budget);

using v1::SearchSummary;

/// Whether a search of the same space under this budget would try nothing that was not tried.
bool covers(const SearchSummary& done, const SearchBudget& asked);

/// Whether `a` allows at least what `b` does.
bool allows_as_much(const SearchBudget& a, const SearchBudget& b);

}  // namespace cubind
