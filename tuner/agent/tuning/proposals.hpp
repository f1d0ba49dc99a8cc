#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "tuner/agent/tuning/candidates.hpp"
#include "tuner/agent/tuning/job_input.hpp"
#include "tuner/search/search_plan.hpp"

namespace cubind {

/// What the job tries next, one after the other, until its strategy has no more or its budget is used up.
/// Some proposals are under way ahead of the trials, so that compilers have work; how many depends on the
/// strategy alone, never on the machine where it matters. Used from the job's thread.
class Proposals {
 public:
  struct Options {
    std::size_t window = 32;                         // of an exhaustive search: how far it is ahead
    std::function<void(const Candidate&)> want;      // lets the compiler begin with it
    std::function<bool(const Candidate&)> is_known;  // its results are stored: it costs no time
  };
  Proposals(const JobInput& input, Candidates& candidates, const Clock& clock, Options options);

  /// The next candidate that was not handed out before; null: there is none. Each is followed by observe().
  const Candidate* next();
  void observe(const Candidate& candidate, Outcome outcome, std::optional<double> time_us);

  /// How many will be tried in all; 0: unknown.
  std::uint64_t expected() const { return plan_.trials; }
  SearchSummary summary() const;
  /// Those that were handed out, in that order.
  const std::vector<const Candidate*>& tried() const { return tried_; }

 private:
  struct Trial {
    Outcome outcome = Outcome::Correct;
    std::optional<double> time_us;
  };
  void look_ahead();
  bool budget_is_used_up(const Candidate& next) const;

  const JobInput& input_;
  Candidates& candidates_;
  const Clock& clock_;
  const Options options_;
  const SearchPlan plan_;
  const std::unique_ptr<Strategy> strategy_;
  const std::chrono::steady_clock::time_point begun_;

  std::vector<Observation> history_;       // with what is under way at its end
  std::size_t done_ = 0;                   // so many of the history are over
  std::map<std::uint32_t, Trial> trials_;  // by candidate number
  std::vector<const Candidate*> tried_;
  bool incumbent_is_due_ = false;
  bool dry_ = false;  // the strategy has no more
};

}  // namespace cubind
