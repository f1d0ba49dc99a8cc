#pragma once

#include <vector>

#include "tuner/agent/job_progress.hpp"
#include "tuner/agent/trial_bench.hpp"
#include "tuner/search/screening.hpp"

namespace cubind {

/// The first pass over all candidates, in search order: compile, verify, screen. Compilers run ahead of the
/// device by a window. The order in which trials are judged is the search order and nothing else, so that a
/// resumed job judges alike; a trial that faults is tried again behind all others. Used from the job's thread.
class ScreenStage {
 public:
  struct Options {
    std::size_t compile_window = 32;
    MeasureSettings settings;
  };
  ScreenStage(const JobInput& input, TrialBench& bench, JobProgress& progress, const CompileSource& artifacts,
              Options options);

  /// The finalists, fastest first. Empty if no candidate survived.
  std::vector<const Candidate*> run();

 private:
  void one(const Candidate& candidate);
  void again(const Candidate& candidate);
  Attempt try_one(const Candidate& candidate);
  Attempt screen(const Candidate& candidate);
  void run_ahead(std::size_t position);

  const JobInput& input_;
  TrialBench& bench_;
  JobProgress& progress_;
  const CompileSource& artifacts_;
  Options options_;
  std::vector<Screened> screened_;  // candidate: position in search order
  std::optional<double> best_us_;
  std::vector<const Candidate*> deferred_;
  std::size_t wanted_ = 0;
  std::uint32_t done_ = 0;
};

}  // namespace cubind
