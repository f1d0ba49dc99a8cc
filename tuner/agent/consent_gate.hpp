#pragma once

#include <chrono>
#include <cstdint>

#include "tuner/agent/device_session.hpp"
#include "tuner/agent/job_progress.hpp"
#include "tuner/agent/job_stop.hpp"

namespace cubind {

// When the agent may measure.
enum class TuneWhen : std::uint8_t {
  Idle,    // while no foreign process uses the GPU
  Always,  // beside them; such a record is provisional
  Never,   // no device is offered
};

// Gives way to others on the GPU. Used from the job's thread.
class ConsentGate {
 public:
  ConsentGate(TuneWhen when, std::chrono::milliseconds poll, DeviceSession& session, JobProgress& progress,
              JobStop& stop)
      : when_(when), poll_(poll), session_(session), progress_(progress), stop_(stop) {}

  bool gives_way() const { return when_ != TuneWhen::Always; }
  // Before the job: waits where somebody else uses the GPU, or another tuner holds it (whatever the consent).
  void enter();
  // Frees the GPU's memory, says so (WAITING_FOR_IDLE_GPU) and returns when nobody else uses the GPU. Throws
  // where the job is stopped meanwhile.
  void wait_until_idle();

 private:
  TuneWhen when_;
  std::chrono::milliseconds poll_;
  DeviceSession& session_;
  JobProgress& progress_;
  JobStop& stop_;
};

}  // namespace cubind
