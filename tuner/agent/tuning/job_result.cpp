#include "tuner/agent/tuning/job_result.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"
#include "tuner/measure/margins.hpp"

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
  timing.set_median_us(record_time_us(winner.times, context));
  timing.set_low_us(interval.low);
  timing.set_high_us(interval.high);
  timing.set_tick_us(context.tick_us);
}

void add_conditions(const Finalist& winner, const TrialLog& log, Timing& timing) {
  std::vector<double> clocks;
  for (const auto& [round, time] : winner.times) {
    const v1::SampleBlock* block = log.block(*winner.candidate, v1::SampleBlock::FINAL, round);
    if (!block) {
      continue;
    }
    timing.set_samples(timing.samples() + static_cast<std::uint32_t>(block->samples_us_size()));
    if (block->conditions().sm_mhz() > 0) {
      clocks.push_back(block->conditions().sm_mhz());
    }
    timing.set_throttled(timing.throttled() || block->conditions().throttled());
    timing.set_contended(timing.contended() || block->conditions().contended());
  }
  if (!clocks.empty()) {
    timing.set_sm_mhz(static_cast<std::uint32_t>(median(clocks)));
  }
}

Timing timing_of(const JobInput& input, const Decision& decision, const TrialLog& log,
                 const RoundContext& context, const v1::DeviceInfo& device, const Clock& clock) {
  const Finalist& winner = decision.finalists[decision.winner];
  Timing timing;
  add_statistics(winner, context, timing);
  add_conditions(winner, log, timing);
  if (decision.fallback) {
    if (const auto ratio = round_ratio(decision.fallback->times, winner.times, context)) {
      timing.set_gain_over_default(ratio->ratio);
    }
  }
  timing.set_timer(device.timer());
  timing.set_power_limit_mw(input.facts.power_limit_mw());
  timing.set_measured_at(clock.wall_text());
  return timing;
}

// Before timing at the measured problem; after it there and at the tails.
VerificationSummary verification_of(const JobInput& input, const Candidate& winner,
                                    const std::vector<Problem>& verified, const TrialLog& log) {
  VerificationSummary summary;
  std::vector<const v1::VerificationResult*> results = {log.verification(winner, input.problem, false)};
  for (const Problem& problem : verified) {
    results.push_back(log.verification(winner, problem, true));
    to_wire(problem, *summary.add_problems());
  }
  summary.set_digest(bytes_of(verification_digest(*input.spec, input.numerics)));
  summary.set_verified(true);
  summary.set_after_timing(true);
  summary.set_same_bits(true);
  for (const v1::VerificationResult* result : results) {
    if (!result) {
      continue;
    }
    summary.set_worst_excess(std::max(summary.worst_excess(), result->worst_excess()));
    summary.set_same_bits(summary.same_bits() && result->same_bits());
    if (!result->reference().empty()) {
      summary.set_reference(result->reference());
    }
  }
  return summary;
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
  // What only the agent knows: the daemon adds the rest.
  v1::Provenance& provenance = *result.mutable_provenance();
  *provenance.mutable_timing() = timing_of(input, decision, log, context, device, clock);
  provenance.set_provisional(provenance.timing().contended());
  *provenance.mutable_verification() = verification_of(input, winner, decision.verified, log);
  to_wire(winner.configuration, *result.mutable_winner());
  for (const Finalist& finalist : decision.finalists) {
    result.add_finalists(bytes_of(finalist.candidate->trial_key.digest));
  }
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
  *result.mutable_search() = proposals.summary();
  for (const auto& [outcome, count] : count_endings(proposals, bench)) {
    v1::OutcomeCount& to = *result.add_outcomes();
    to.set_outcome(outcome);
    to.set_count(count);
  }
}

}  // namespace cubind
