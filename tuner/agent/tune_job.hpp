#pragma once

#include <chrono>
#include <functional>

#include "base/clock.hpp"
#include "tuner/agent/compiler.hpp"
#include "tuner/agent/consent_gate.hpp"
#include "tuner/agent/job_channel.hpp"
#include "tuner/agent/job_input.hpp"
#include "tuner/agent/job_progress.hpp"
#include "tuner/agent/job_stop.hpp"
#include "tuner/agent/kernel_builds.hpp"
#include "tuner/agent/remote_device.hpp"
#include "tuner/measure/measure_settings.hpp"

namespace cubind {

/// The tuning loop: enumerate, compile, verify, screen, interleave the finalists, choose, verify the winner.
///
/// The search is a function of the lease and of the samples: the results in the lease are used and never
/// repeated, so that a job that was killed anywhere ends with the winner of the undisturbed one.
class TuneJob {
 public:
  struct Parts {
    Compiler& compiles;
    KernelBuilds& builds;
    DeviceLink& device;
    JobChannel& channel;
    JobStop& stop;
    const Clock& clock;
  };
  struct Options {
    MeasureSettings settings;
    DeviceDeadlines deadlines;
    TuneWhen when = TuneWhen::Idle;
    std::chrono::milliseconds idle_poll{2000};
    std::size_t compile_window = 32;  // a request with CUDA's 16-bit headers has 1.6 MB
    v1::OpenDevice open;
    std::function<GpuLend()> lend = {};  // of the device, now
    /// Told once what the device says of itself when it is in use: by then it knows which rule of consent is
    /// in force.
    std::function<void(const v1::DeviceInfo&)> on_device = {};
  };
  TuneJob(Parts parts, Options options);

  /// Blocks until the job has ended. A job that cannot be done here is a result with its reason (FAILED); a
  /// job that lost the GPU or the compile workers is INTERRUPTED and tried again later. Throws
  /// Error(Cancelled) or Error(Aborted) if the job was stopped. The caller then sends nothing more for it
  /// but, for Cancelled, an INTERRUPTED.
  v1::JobResult run(const v1::LeaseGrant& lease);

 private:
  struct OnDevice {
    RemoteDevice& remote;
    JobProgress& progress;
    ConsentGate& consent;
  };
  v1::JobResult search(const v1::LeaseGrant& lease);
  /// Throws OutOfDeviceMemory if the problem does not fit.
  v1::JobResult measure(const v1::LeaseGrant& lease, JobInput& input, const KernelBuild& build,
                        const OnDevice& on);

  Parts parts_;
  Options options_;
};

}  // namespace cubind
