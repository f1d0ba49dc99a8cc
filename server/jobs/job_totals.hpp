// How the jobs since the daemon's start ended, for the metrics.
#pragma once

#include <cstdint>
#include <map>

#include "server/store/rows.hpp"

namespace cubind {

struct JobTotals {
  std::map<JobState, std::uint64_t> ended;  // by the state in which a job ended
  std::map<Outcome, std::uint64_t> trials;  // of ended jobs, by outcome
  std::uint64_t winner_changes = 0;         // records that replaced one with another configuration
};

}  // namespace cubind
