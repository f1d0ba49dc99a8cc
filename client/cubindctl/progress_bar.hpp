// The line that tells how far running jobs are.
#pragma once

#include <cstddef>
#include <string>

#include "schemas/cubind.pb.h"

namespace cubind::ctl {

struct Tally {
  std::size_t done = 0;
  std::size_t expected = 1;
};

/// "2 of 4 done [#####-----] 42/96 screening, best 24.30 us, rmsnorm_forward N=4096,D=4096,T=bf16", at most
/// `columns` long. If there is no room for all of it, the least important parts go first (kernel, problem,
/// the words of the tally, the bar).
std::string bar_text(const v1::TuneEvent& event, const Tally& tally, std::size_t columns);

/// "replayed: " for a replay device, else empty.
std::string replay_prefix(const std::string& device);

/// The state of a job that has not ended: its phase, or the reason for its wait.
std::string state_text(const v1::Job& job);

}  // namespace cubind::ctl
