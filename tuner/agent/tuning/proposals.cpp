#include "tuner/agent/tuning/proposals.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plan/answer_wire.hpp"
#include "tuner/search/listed_strategy.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {
namespace {

// Of those that are valid.
std::vector<std::uint64_t> numbers_of(const std::vector<Configuration>& configurations,
                                      const JobInput& input) {
  std::vector<std::uint64_t> numbers;
  for (const Configuration& one : configurations) {
    if (const auto number = input.space->number(one)) {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

// The default first, then those that the job lists.
std::vector<std::uint64_t> given_numbers(const JobInput& input) {
  std::vector<Configuration> given = {input.preset};
  given.insert(given.end(), input.listed.begin(), input.listed.end());
  return numbers_of(given, input);
}

std::uint64_t seed_of(const Digest& job_key) {
  std::uint64_t seed = 0;
  std::memcpy(&seed, job_key.bytes.data(), sizeof(seed));
  return seed;
}

SearchPlan plan_of(const JobInput& input) {
  if (input.listed.empty()) {
    return plan_search(input.space->numbers(), input.budget);
  }
  return {.exhaustive = true, .trials = given_numbers(input).size()};
}

std::unique_ptr<Strategy> strategy_of(const JobInput& input, const SearchPlan& plan) {
  if (!input.listed.empty()) {
    return std::make_unique<ListedStrategy>(given_numbers(input));
  }
  return make_strategy(plan, input.space->numbers(), given_numbers(input), numbers_of(input.hints, input),
                       seed_of(input.job_key));
}

}  // namespace

Proposals::Proposals(const JobInput& input, Candidates& candidates, const Clock& clock, Options options)
    : input_(input),
      candidates_(candidates),
      clock_(clock),
      options_(std::move(options)),
      plan_(plan_of(input)),
      strategy_(strategy_of(input, plan_)),
      begun_(clock.steady_now()),
      incumbent_is_due_(candidates.incumbent() != nullptr) {}

// The history of what was proposed does not hold the incumbent until the strategy comes to it: a job that
// goes on where another has ended then repeats its proposals, whose results are known.
const Candidate* Proposals::next() {
  if (std::exchange(incumbent_is_due_, false)) {
    options_.want(*candidates_.incumbent());
    look_ahead();
    return candidates_.incumbent();
  }
  for (look_ahead(); done_ < history_.size(); look_ahead()) {
    Observation& observation = history_[done_];
    const Candidate* candidate = candidates_.at(observation.number);
    const auto trial = candidate ? trials_.find(candidate->number) : trials_.end();
    if (candidate && trial == trials_.end()) {
      return budget_is_used_up(*candidate) ? nullptr : candidate;
    }
    observation.outcome = candidate ? trial->second.outcome : Outcome::Constraint;
    observation.time_us = candidate ? trial->second.time_us : std::nullopt;
    ++done_;
  }
  return nullptr;
}

bool Proposals::budget_is_used_up(const Candidate& next) const {
  if (plan_.limit > 0 && tried_.size() >= plan_.limit) {
    return true;
  }
  if (input_.budget.max_seconds == 0 || options_.is_known(next)) {
    return false;
  }
  const std::chrono::duration<double> now = clock_.steady_now() - begun_;
  return input_.spent_seconds + now.count() >= input_.budget.max_seconds;
}

void Proposals::look_ahead() {
  const std::size_t given = strategy_->given() - std::min(strategy_->given(), done_);
  const std::size_t ahead = plan_.exhaustive ? options_.window : std::max(kModelAhead, given);
  const std::size_t under_way = history_.size() - done_;
  if (dry_ || under_way >= ahead) {
    return;
  }
  const auto proposed = strategy_->propose(history_, ahead - under_way);
  dry_ = proposed.size() < ahead - under_way;
  for (const std::uint64_t number : proposed) {
    history_.push_back({number, Outcome::Correct, std::nullopt});
    const bool is_beyond = plan_.limit > 0 && tried_.size() + history_.size() - done_ > plan_.limit;
    const Candidate* candidate = is_beyond ? nullptr : candidates_.at(number);
    if (candidate && !trials_.contains(candidate->number)) {
      options_.want(*candidate);
    }
  }
}

void Proposals::observe(const Candidate& candidate, Outcome outcome, std::optional<double> time_us) {
  trials_[candidate.number] = {outcome, time_us};
  tried_.push_back(&candidate);
}

SearchSummary Proposals::summary() const {
  SearchSummary summary;
  summary.set_space(bytes_of(space_digest(*input_.spec, input_.problem, input_.constants)));
  summary.set_strategy(std::string(!input_.listed.empty() ? kListed
                                   : plan_.exhaustive     ? kExhaustiveSearch
                                                          : kModelSearch));
  summary.set_trials(tried_.size());
  summary.set_complete(dry_ && done_ == history_.size() && history_.size() == input_.space->numbers().size());
  if (!summary.complete() && input_.budget.max_seconds > 0 &&
      (plan_.limit == 0 || tried_.size() < plan_.limit)) {
    summary.set_seconds(input_.budget.max_seconds);
  }
  return summary;
}

}  // namespace cubind
