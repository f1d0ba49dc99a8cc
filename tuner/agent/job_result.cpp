#include "tuner/agent/job_result.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "tuner/measure/margins.hpp"
#include "tuner/plan/answer_wire.hpp"
#include "tuner/plan/evidence_wire.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind {
namespace {

constexpr std::size_t kMostDetail = 1000;  // bytes of a compiler's messages

void add_statistics(const Finalist& winner, const RoundContext& context, Timing& timing) {
  std::vector<double> times;
  for (const auto& [round, time] : winner.times) {
    times.push_back(time);
  }
  const BootstrapOptions options{context.settings.confidence, context.settings.bootstrap_resamples,
                                 record_location(winner.times, context), context.seed};
  const ConfidenceInterval interval = bootstrap_interval(times, options);
  timing.median_us = record_time_us(winner.times, context);
  timing.low_us = interval.low;
  timing.high_us = interval.high;
  timing.tick_us = context.tick_us;
}

void add_conditions(const Finalist& winner, const TrialLog& log, Timing& timing) {
  std::vector<double> clocks;
  for (const auto& [round, time] : winner.times) {
    const v1::SampleBlock* block = log.block(*winner.candidate, v1::SampleBlock::FINAL, round);
    if (!block) {
      continue;
    }
    timing.samples += static_cast<std::uint32_t>(block->samples_us_size());
    if (block->conditions().sm_mhz() > 0) {
      clocks.push_back(block->conditions().sm_mhz());
    }
    timing.throttled = timing.throttled || block->conditions().throttled();
    timing.contended = timing.contended || block->conditions().contended();
  }
  if (!clocks.empty()) {
    timing.sm_mhz = static_cast<std::uint32_t>(median(clocks));
  }
}

Timing timing_of(const JobInput& input, const Decision& decision, const TrialLog& log,
                 const RoundContext& context, const v1::DeviceInfo& device, const Clock& clock) {
  const Finalist& winner = decision.finalists[decision.winner];
  Timing timing;
  add_statistics(winner, context, timing);
  add_conditions(winner, log, timing);
  if (decision.fallback) {
    const auto ratio = round_ratio(decision.fallback->times, winner.times, context);
    timing.gain_over_default = ratio ? ratio->ratio : 0;
  }
  timing.timer = device.timer();
  timing.power_limit_mw = input.facts.power_limit_mw();
  timing.measured_at = clock.wall_text();
  return timing;
}

// Before timing at the measured problem; after it there and at the tails.
VerificationSummary verification_of(const JobInput& input, const Candidate& winner,
                                    const std::vector<Problem>& verified, const TrialLog& log) {
  VerificationSummary summary;
  std::vector<const v1::VerificationResult*> results = {log.verification(winner, input.problem, false)};
  for (const Problem& problem : verified) {
    results.push_back(log.verification(winner, problem, true));
    summary.problems.push_back(problem);
  }
  summary.verified = summary.after_timing = summary.same_bits = true;
  for (const v1::VerificationResult* result : results) {
    if (!result) {
      continue;
    }
    summary.worst_excess = std::max(summary.worst_excess, result->worst_excess());
    summary.same_bits = summary.same_bits && result->same_bits();
    if (!result->reference().empty()) {
      summary.reference = result->reference();
    }
  }
  return summary;
}

// What only the agent knows: the daemon adds the rest.
v1::Provenance provenance_of(const JobInput& input, const Decision& decision, const TrialLog& log,
                             const Timing& timing) {
  const Candidate& winner = *decision.finalists[decision.winner].candidate;
  v1::Provenance to;
  to_wire(timing, to);
  to.set_provisional(timing.contended);
  to_wire(verification_of(input, winner, decision.verified, log), *to.mutable_verification());
  return to;
}

std::map<v1::Outcome, std::uint32_t> count_endings(const Proposals& proposals, const TrialBench& bench) {
  std::map<v1::Outcome, std::uint32_t> counts;
  for (const Candidate* candidate : proposals.tried()) {
    ++counts[bench.ending(*candidate)];
  }
  return counts;
}

}  // namespace

v1::JobResult make_job_result(const JobInput& input, const Decision& decision, const TrialLog& log,
                              const RoundContext& context, const v1::DeviceInfo& device, const Clock& clock) {
  const Candidate& winner = *decision.finalists[decision.winner].candidate;
  v1::JobResult result;
  result.set_status(v1::JobResult::DONE);
  result.set_winner_trial(bytes_of(winner.trial_key.digest));
  const Timing timing = timing_of(input, decision, log, context, device, clock);
  *result.mutable_provenance() = provenance_of(input, decision, log, timing);
  to_wire(winner.configuration, *result.mutable_winner());
  for (const Finalist& finalist : decision.finalists) {
    result.add_finalists(bytes_of(finalist.candidate->trial_key.digest));
  }
  result.set_verification_digest(bytes_of(verification_digest(*input.spec, input.numerics)));
  to_wire(input.problem, *result.mutable_measured_problem());
  return result;
}

std::string why_none_survived(const Proposals& proposals, const TrialBench& bench, const TrialLog& log) {
  std::string counts, first;
  for (const auto& [outcome, count] : count_endings(proposals, bench)) {
    counts += (counts.empty() ? ": " : ", ") + std::to_string(count) + " " +
              std::string(to_string(outcome_from_wire(outcome, "outcome")));
  }
  for (const Candidate* candidate : proposals.tried()) {
    const v1::TrialHeader* header = log.header(*candidate);
    if (header && !header->detail().empty()) {
      first = "; " + to_string(candidate->configuration) + ": " +
              std::string(trimmed(cut_utf8(header->detail(), kMostDetail)));
      break;
    }
  }
  return "no configuration survived" + counts + first;
}

void describe_search(const Proposals& proposals, const TrialBench& bench, v1::JobResult& result) {
  const SearchSummary search = proposals.summary();
  v1::SearchSummary& summary = *result.mutable_search();
  summary.set_space(bytes_of(search.space));
  summary.set_strategy(search.strategy);
  summary.set_trials(search.trials);
  summary.set_seconds(search.seconds);
  summary.set_complete(search.complete);
  for (const auto& [outcome, count] : count_endings(proposals, bench)) {
    v1::OutcomeCount& to = *result.add_outcomes();
    to.set_outcome(outcome);
    to.set_count(count);
  }
}

}  // namespace cubind
