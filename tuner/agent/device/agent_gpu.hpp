#pragma once

#include <filesystem>
#include <memory>
#include <mutex>

#include "base/subprocess.hpp"
#include "tuner/agent/device/device_finder.hpp"
#include "tuner/agent/device/spare_worker.hpp"
#include "tuner/agent/device/worker_link.hpp"
#include "tuner/agent/device/worker_starter.hpp"
#include "tuner/agent/lease/job_stop.hpp"

namespace cubind {

/// A device of this machine. One tuning job uses it at a time, and its worker outlives a job that leaves it
/// open for the next one; between jobs a spare worker waits. Thread-safe but for `device`, whose offer the
/// agent guards.
class AgentGpu {
 public:
  /// `spawner` must outlive this object.
  AgentGpu(LocalDevice found, Spawner& spawner, const std::filesystem::path& worker_program);

  LocalDevice device;

  /// No job, and no worker of ours but a spare one.
  bool is_idle();
  /// Keeps a spare worker while the device is idle. While a worker measures, no spare one waits.
  void keep_spare();
  /// Ends the worker that a job has left open. Nothing happens while a job uses it.
  void end_left_worker();

  /// A job's use of the device, from when it is free. At its end the worker is kept if it was left open and
  /// the job was not stopped: the link of a stopped one starts no other.
  class Turn {
   public:
    Turn(AgentGpu& gpu, const JobStop& stop);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    WorkerLink& link() { return *gpu_.worker_; }
    void end_worker() { gpu_.worker_->stop(); }

   private:
    AgentGpu& gpu_;
    const std::unique_lock<std::mutex> busy_;
    const JobStop& stop_;
  };

 private:
  const WorkerStarter starter_;
  std::mutex busy_;                     // held by the job
  SpareWorker spare_;                   // guarded by busy_
  std::unique_ptr<WorkerLink> worker_;  // guarded by busy_
};

}  // namespace cubind
