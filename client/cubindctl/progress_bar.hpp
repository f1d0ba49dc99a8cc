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
/// `columns` long: what matters least goes first where there is no room for all of it (kernel, problem, the
/// words of the tally, the bar).
std::string bar_text(const v1::TuneEvent& event, const Tally& tally, std::size_t columns);

/// "replayed: " for a replay device, else empty.
std::string replay_prefix(const std::string& device);

/// What a job that has not ended is at: its phase, or what it waits for.
std::string state_text(const v1::Job& job);

}  // namespace cubind::ctl
