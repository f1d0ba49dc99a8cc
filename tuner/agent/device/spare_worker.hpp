#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tuner/agent/device/worker_starter.hpp"

namespace cubind {

/// A device worker that is started before a job needs it. It initialises the driver and waits: no context,
/// no lock on the GPU, no question of consent. The next job goes on with it and opens the GPU in half the
/// time. It ends with this object. One thread at a time.
class SpareWorker {
 public:
  using Clock = std::chrono::steady_clock;

  /// `starter` must outlive this object.
  explicit SpareWorker(const WorkerStarter& starter) : starter_(starter) {}

  /// Starts one unless one lives. One that ended untaken is replaced after a second, after the next such end
  /// in two, and so on up to a minute.
  void keep(Clock::time_point now = Clock::now());
  /// Absent: none lives.
  std::optional<WorkerProcess> take();

 private:
  void pause(Clock::time_point now, const std::string& why);

  const WorkerStarter& starter_;
  std::optional<WorkerProcess> spare_;
  unsigned ends_ = 0;  // in a row, untaken
  Clock::time_point not_before_{};
};

}  // namespace cubind
