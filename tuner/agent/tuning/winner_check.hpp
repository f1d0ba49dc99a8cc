#pragma once

#include <vector>

#include "tuner/agent/tuning/trial_bench.hpp"

namespace cubind {

/// Verifies finalists again after timing: each where it was timed, a winner at the tails of its bucket too. A
/// fault is repeated in a fresh worker first.
class WinnerCheck {
 public:
  WinnerCheck(const JobInput& input, TrialBench& bench) : input_(input), bench_(bench) {}

  /// At the measured problem, on other inputs than before timing. False: the candidate is out.
  bool passes_where_timed(const Candidate& candidate);
  /// At the tails. False: the candidate is out, and the next finalist is to be asked. A tail that the device
  /// has no memory for is left out.
  bool passes_at_tails(const Candidate& candidate);
  /// The problems that the last candidate was verified at: the measured one and the tails.
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  bool passes_at(const Candidate& candidate, const DeviceSetup& setup);

  const JobInput& input_;
  TrialBench& bench_;
  std::vector<Problem> problems_;
};

}  // namespace cubind
