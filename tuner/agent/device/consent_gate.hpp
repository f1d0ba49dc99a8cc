#pragma once

#include <chrono>
#include <cstdint>

#include "tuner/agent/device/remote_device.hpp"
#include "tuner/agent/lease/job_stop.hpp"
#include "tuner/agent/tuning/job_progress.hpp"

namespace cubind {

/// When the agent may measure.
enum class TuneWhen : std::uint8_t {
  Idle,    // while no foreign process uses the GPU
  Always,  // also while they do; such a record is provisional
  Never,   // no device is offered
};

/// Gives way to others on the GPU. Used from the job's thread.
class ConsentGate {
 public:
  struct Options {
    TuneWhen when = TuneWhen::Idle;
    /// Gives way under any `when`, and does not wait but throws Error(Unavailable), so that the job is handed
    /// back and others may have their turn.
    bool only_when_idle = false;
    std::chrono::milliseconds poll{2000};
  };
  ConsentGate(Options options, RemoteDevice& remote, JobProgress& progress, JobStop& stop)
      : options_(options), remote_(remote), progress_(progress), stop_(stop) {}

  bool gives_way() const { return options_.only_when_idle || options_.when != TuneWhen::Always; }
  /// Before the job: waits while another process uses the GPU, or another tuner holds it (under any consent).
  void enter();
  /// Frees the GPU's memory, says so (WAITING_FOR_IDLE_GPU) and returns when no other process uses the GPU.
  /// Throws where the job is stopped meanwhile.
  void wait_until_idle();

 private:
  Options options_;
  RemoteDevice& remote_;
  JobProgress& progress_;
  JobStop& stop_;
};

}  // namespace cubind
