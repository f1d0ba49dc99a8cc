// The line that tells how far running jobs are.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "schemas/cubind.pb.h"

namespace cubind::ctl {

struct Tally {
  std::size_t done = 0;
  std::size_t expected = 1;
  /// Those of the `done` that measured something, and the time that they took together.
  std::size_t measured = 0;
  double measured_ms = 0;
};

/// "2 of 4 done [#####-----] 42/96 screening, best screened 24.30 us, 12 s, about 25 s left,
/// rmsnorm_forward N=4096,D=4096,T=bf16", at most `columns` long. If there is no room for all of it, the
/// least important parts go first (kernel, problem, times, the words of the tally, the bar).
std::string bar_text(const v1::TuneEvent& event, const Tally& tally, std::size_t columns);

/// "replayed: " for a replay device, else empty.
std::string replay_prefix(const std::string& device);

/// The state of a job that has not ended: its stage, or the reason for its wait.
std::string state_text(const v1::Job& job);

/// The stage of a running job; empty: none is known. Between its first and its last configuration a tuning
/// job compiles, verifies and samples one after the other: all of it is "screening".
std::string stage_of(const v1::Job& job);

/// The time that the rest of all jobs will take, as the configurations so far and the ended jobs took, ms;
/// absent while too little is known.
std::optional<double> time_left_ms(const v1::Job& job, const Tally& tally);

/// "850 ms", "12 s", "3 min 20 s", "2 h 5 min".
std::string rough_time(double milliseconds);

}  // namespace cubind::ctl
