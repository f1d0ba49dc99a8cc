#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "tuner/agent/tuning/final_stage.hpp"
#include "tuner/agent/tuning/job_input.hpp"
#include "tuner/agent/tuning/proposals.hpp"
#include "tuner/agent/tuning/trial_bench.hpp"
#include "tuner/agent/tuning/trial_log.hpp"

namespace cubind {

/// What the final rounds and the check of their winner came to.
struct Decision {
  const std::vector<Finalist>& finalists;
  std::size_t winner = 0;              // index among the finalists
  const Finalist* fallback = nullptr;  // the default configuration's; null: it did not survive
  std::vector<Problem> verified;       // problems at which the winner was verified after timing
};

/// DONE, with the winner's evidence: the median of its rounds with its 95 % bootstrap interval, clocks and
/// conditions of its blocks, the gain over the default within common rounds, and the verification. Pure.
v1::JobResult make_job_result(const JobInput& input, const Decision& decision, const TrialLog& log,
                              const RoundContext& context, const v1::DeviceInfo& device, const Clock& clock);

/// Why no candidate can win: how many ended how, and what the first of them that failed says of itself.
std::string why_none_survived(const Proposals& proposals, const TrialBench& bench, const TrialLog& log);

/// Adds what was searched, and how many of the tried candidates ended how.
void describe_search(const Proposals& proposals, const TrialBench& bench, v1::JobResult& result);

}  // namespace cubind
