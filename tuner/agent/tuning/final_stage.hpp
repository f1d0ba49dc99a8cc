#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tuner/agent/lease/job_stop.hpp"
#include "tuner/agent/tuning/job_progress.hpp"
#include "tuner/agent/tuning/trial_bench.hpp"
#include "tuner/search/choice.hpp"
#include "tuner/search/final_rounds.hpp"

namespace cubind {

/// One finalist with everything that decides.
struct Finalist {
  const Candidate* candidate = nullptr;
  RoundTimes times;     // by round
  bool running = true;  // was not separated from the leader
};

/// Measures the finalists in interleaved rounds until they separate or tie. A round that is stored for all of
/// its finalists is taken from the store. A round that some of them miss is not, because times of different
/// rounds are not compared: then new rounds are measured with all of them. Used from the job's thread.
class FinalStage {
 public:
  FinalStage(TrialBench& bench, const TrialLog& log, JobProgress& progress, const JobStop& stop,
             const RoundContext& context);

  /// Those that were measured and are still in; a finalist that failed is left out.
  std::vector<Finalist> run(const std::vector<const Candidate*>& finalists);

 private:
  RoundPlan plan_of(const std::vector<const Candidate*>& finalists) const;
  std::uint32_t next_round(const std::vector<const Candidate*>& running, std::uint32_t at_least) const;
  std::optional<std::map<std::size_t, double>> measure(std::uint32_t round,
                                                       const std::vector<const Candidate*>& finalists,
                                                       std::uint32_t samples, FinalRounds& rounds);

  TrialBench& bench_;
  const TrialLog& log_;
  JobProgress& progress_;
  const JobStop& stop_;
  RoundContext context_;
};

/// The winner's index among the finalists, by choose_winner; absent if none is left.
std::optional<std::size_t> choose_finalist(const std::vector<Finalist>& finalists, const TrialBench& bench,
                                           const RoundContext& context);

}  // namespace cubind
