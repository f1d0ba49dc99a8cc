// The events that watchers of a job get.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/jobs/toolchain_need.hpp"
#include "server/lookup/index.hpp"
#include "server/store/rows.hpp"

namespace cubind {

struct JobEvent {
  JobRow job;          // with the time that a running job has taken so far
  std::string device;  // label
  std::string stage;   // as v1::Job::phase
  double best_us = 0;
  std::uint32_t waiters = 0;
  RecordPtr record;  // with the last event of a job that has found a winner
  std::string refusal =
      {};  // why the store did not take its latest results: it is queued until there is room
  ToolchainNeed needs = {};  // of an open job
};

/// Called on the job thread; must not block.
using Watcher = std::function<void(const JobEvent&)>;

/// Whether waiters should stop waiting for the job: it has ended, or it is unknown when it will go on.
inline bool ends_the_wait(const JobEvent& event) {
  const JobState state = event.job.state;
  return has_ended(state) || state == JobState::NoDevice || state == JobState::WaitingForIdleGpu ||
         !event.refusal.empty();
}

}  // namespace cubind
