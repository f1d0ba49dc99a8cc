// The events that a job's watchers receive.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "server/jobs/toolchain_need.hpp"
#include "server/lookup/index.hpp"
#include "server/store/rows.hpp"

namespace cubind {

struct JobEvent {
  JobRow job;          // includes the time that a running job has taken so far
  std::string device;  // label
  std::string stage;   // as v1::Job::stage
  double best_us = 0;
  std::uint32_t waiters = 0;
  RecordPtr record;  // in the last event of a job that has found a winner
  std::string refusal =
      {};  // why the store did not accept its latest results: it is queued until there is room
  ToolchainNeed needs = {};        // of an open job
  std::string waits_because = {};  // WaitingForIdleGpu: the other user of the GPU, if known
  bool waits_lent = false;         // WaitingForIdleGpu: although a caller lends the GPU
  bool daemon_stops = false;       // the job continues with the next daemon
};

inline Error no_such_job(const std::string& id) {
  return {ErrorCode::NotFound, "id", "there is no job " + quoted(id)};
}

/// Called on the job thread; must not block.
using Watcher = std::function<void(const JobEvent&)>;

/// Whether waiters should stop waiting for the job: it has ended, or no one knows when it will continue. A
/// waiter that lends its GPU waits on until the agent finds that GPU in use.
inline bool ends_the_wait(const JobEvent& event, bool lends = false) {
  const JobState state = event.job.state;
  const bool gpu_in_use = state == v1::Job::WAITING_FOR_IDLE_GPU && (!lends || event.waits_lent);
  return has_ended(state) || state == v1::Job::NO_DEVICE || gpu_in_use || event.daemon_stops ||
         !event.refusal.empty();
}

}  // namespace cubind
