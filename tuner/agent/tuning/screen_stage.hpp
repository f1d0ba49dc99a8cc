#pragma once

#include <optional>
#include <vector>

#include "tuner/agent/lease/job_stop.hpp"
#include "tuner/agent/tuning/job_progress.hpp"
#include "tuner/agent/tuning/proposals.hpp"
#include "tuner/agent/tuning/same_code.hpp"
#include "tuner/agent/tuning/trial_bench.hpp"
#include "tuner/search/screening.hpp"

namespace cubind {

/// The first pass over the proposals: compile, time once, verify what may still win, screen that. Of trials
/// that run the same code one alone is measured. Trials are judged in the order in which they are proposed
/// and in no other, so that a resumed job judges alike; a trial that faults is tried again behind all
/// others. Used from the job's thread.
class ScreenStage {
 public:
  ScreenStage(const JobInput& input, Proposals& proposals, TrialBench& bench, SameCode& same_code,
              JobProgress& progress, const CompileSource& artifacts, const JobStop& stop,
              MeasureSettings settings);

  /// The finalists, fastest first: each is verified. Empty if no candidate survived.
  std::vector<const Candidate*> run();

 private:
  void one(const Candidate& candidate);
  void again(const Candidate& candidate);
  std::optional<Attempt> compile(const Candidate& candidate);
  Attempt measure(const Candidate& candidate);
  std::optional<double> observed_us(const Candidate& candidate);
  Attempt screen(const Candidate& candidate);
  Attempt verify(const Candidate& candidate);
  const Candidate* next();
  void put_away(const Candidate& candidate);

  const JobInput& input_;
  Proposals& proposals_;
  TrialBench& bench_;
  SameCode& same_code_;
  JobProgress& progress_;
  const CompileSource& artifacts_;
  const JobStop& stop_;
  MeasureSettings settings_;
  std::vector<const Candidate*> survivors_;  // that were screened fully, in the order of their trials
  std::vector<Screened> screened_;           // candidate: index into survivors_
  std::optional<double> best_us_;
  std::vector<const Candidate*> deferred_;
  std::uint32_t done_ = 0;
};

}  // namespace cubind
