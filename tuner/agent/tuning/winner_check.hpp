#pragma once

#include <vector>

#include "tuner/agent/tuning/trial_bench.hpp"

namespace cubind {

/// Verifies a winner again after timing, on fresh inputs, and at the tails of its bucket.
class WinnerCheck {
 public:
  WinnerCheck(const JobInput& input, TrialBench& bench) : input_(input), bench_(bench) {}

  /// False: the candidate is out, and the next finalist is to be asked. A tail that the device has no memory
  /// for is left out. A fault is repeated in a fresh worker first.
  bool passes(const Candidate& candidate);
  /// The problems that the last candidate was verified at: the measured one and the tails.
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  bool passes_at(const Candidate& candidate, const DeviceSetup& setup);

  const JobInput& input_;
  TrialBench& bench_;
  std::vector<Problem> problems_;
};

}  // namespace cubind
