#include "tuner/agent/job_result.hpp"

#include <algorithm>
#include <map>

#include "tuner/measure/margins.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind {
namespace {

void add_statistics(const Finalist& winner, const RoundContext& context, v1::Provenance& to) {
  std::vector<double> times;
  for (const auto& [round, time] : winner.times) {
    times.push_back(time);
  }
  const bool means = compares_means(median(times), context.tick_us, context.settings);
  BootstrapOptions options{context.settings.confidence, context.settings.bootstrap_resamples,
                           means ? Location::Mean : Location::Median, context.seed};
  const Interval interval = bootstrap_interval(times, options);
  to.set_median_us(location(times, options.kind));
  to.set_median_low_us(interval.low);
  to.set_median_high_us(interval.high);
  to.set_samples(static_cast<std::uint32_t>(times.size()));
  to.set_tick_us(context.tick_us);
}

void add_conditions(const Finalist& winner, const TrialLog& log, v1::Provenance& to) {
  std::vector<double> clocks;
  for (const auto& [round, time] : winner.times) {
    const v1::SampleBlock* block = log.block(*winner.candidate, v1::SampleBlock::FINAL, round);
    if (!block) {
      continue;
    }
    if (block->conditions().sm_mhz() > 0) {
      clocks.push_back(block->conditions().sm_mhz());
    }
    if (block->conditions().throttled()) {
      to.set_throttled(true);
    }
    if (block->conditions().contended()) {
      to.set_contended(true);
    }
  }
  if (!clocks.empty()) {
    to.set_sm_mhz(static_cast<std::uint32_t>(median(clocks)));
  }
  to.set_provisional(to.contended());
}

// Before timing at the measured problem; after it there and at the tails.
void add_verification(const JobInput& input, const Candidate& winner, const std::vector<Problem>& verified,
                      const TrialLog& log, v1::VerificationSummary& to) {
  std::vector<const v1::VerificationResult*> results = {log.verification(winner, input.problem, false)};
  for (const Problem& problem : verified) {
    results.push_back(log.verification(winner, problem, true));
    to_wire(problem, *to.add_problems());
  }
  to.set_verified(true);
  to.set_after_timing(true);
  to.set_same_bits(true);
  for (const v1::VerificationResult* result : results) {
    if (!result) {
      continue;
    }
    to.set_worst_excess(std::max(to.worst_excess(), result->worst_excess()));
    to.set_same_bits(to.same_bits() && result->same_bits());
    if (!result->reference().empty()) {
      to.set_reference(result->reference());
    }
  }
}

v1::Provenance provenance_of(const JobInput& input, const Decision& decision, const TrialBench& bench,
                             const TrialLog& log, const RoundContext& context, const v1::DeviceInfo& device) {
  const Finalist& winner = decision.finalists[decision.winner];
  v1::Provenance to;
  to.set_evidence(input.replayed ? v1::REPLAYED : v1::MEASURED);
  to_wire(input.problem, *to.mutable_measured_problem());
  to.set_measured_device(input.facts.name());
  to.set_measured_device_class(bytes_of(input.device_class));
  *to.mutable_driver() = input.driver;
  to.set_toolchain(bench.artifact(*winner.candidate).toolchain.name);
  add_statistics(winner, context, to);
  add_conditions(winner, log, to);
  if (decision.fallback) {
    const auto ratio = round_ratio(decision.fallback->times, winner.times, context, false);
    if (ratio) {
      to.set_gain_over_default(ratio->ratio);
    }
  }
  add_verification(input, *winner.candidate, decision.verified, log, *to.mutable_verification());
  to.set_same_bytes_measured(true);
  to.set_timer(device.timer());
  to.set_power_limit_mw(input.facts.power_limit_mw());
  return to;
}

}  // namespace

v1::JobResult make_job_result(const JobInput& input, const Decision& decision, const TrialBench& bench,
                              const TrialLog& log, const RoundContext& context, const v1::DeviceInfo& device,
                              const Clock& clock) {
  const Candidate& winner = *decision.finalists[decision.winner].candidate;
  v1::JobResult result;
  result.set_status(v1::JobResult::DONE);
  result.set_winner_trial(bytes_of(winner.trial_key.digest));
  *result.mutable_provenance() = provenance_of(input, decision, bench, log, context, device);
  result.mutable_provenance()->set_measured_at(clock.wall_text());
  to_wire(winner.configuration, *result.mutable_winner());
  for (const Finalist& finalist : decision.finalists) {
    result.add_finalists(bytes_of(finalist.candidate->trial_key.digest));
  }
  result.set_verification_digest(bytes_of(verification_digest(*input.spec, input.numerics)));
  to_wire(input.problem, *result.mutable_measured_problem());
  count_outcomes(input, bench, result);
  return result;
}

void count_outcomes(const JobInput& input, const TrialBench& bench, v1::JobResult& result) {
  std::map<v1::Outcome, std::uint32_t> counts;
  for (const Candidate& candidate : input.candidates) {
    ++counts[bench.outcome(candidate).value_or(v1::CORRECT)];
  }
  for (const auto& [outcome, count] : counts) {
    v1::OutcomeCount& to = *result.add_outcomes();
    to.set_outcome(outcome);
    to.set_count(count);
  }
}

}  // namespace cubind
