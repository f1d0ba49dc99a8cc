#pragma once

#include <chrono>
#include <functional>

#include "base/clock.hpp"
#include "tuner/agent/compile/compiler.hpp"
#include "tuner/agent/compile/kernel_builds.hpp"
#include "tuner/agent/device/consent_gate.hpp"
#include "tuner/agent/device/remote_device.hpp"
#include "tuner/agent/lease/job_channel.hpp"
#include "tuner/agent/lease/job_stop.hpp"
#include "tuner/agent/tuning/job_input.hpp"
#include "tuner/agent/tuning/job_progress.hpp"
#include "tuner/measure/measure_settings.hpp"

namespace cubind {

/// The tuning loop: enumerate, compile, verify, screen, interleave the finalists, choose, verify the winner.
///
/// The search is a function of the lease and the samples. Results in the lease are used and not repeated, so
/// a job that was killed at any point ends with the same winner as an undisturbed one.
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
    std::size_t compile_window = 32;  // a request with CUDA's 16-bit headers takes 1.6 MB
    v1::OpenDevice open;
    std::function<GpuLend()> lend = {};  // the device's current lend
    /// Called once with the device's description, after its first use: then the rule of consent is known.
    std::function<void(const v1::DeviceInfo&)> on_device = {};
  };
  TuneJob(Parts parts, Options options);

  /// Blocks until the job has ended. If the job cannot be done here, the result is FAILED with the reason; if
  /// it lost the GPU or the compile workers, the result is INTERRUPTED and the job is tried again later.
  /// Throws Error(Cancelled) or Error(Aborted) if the job was stopped. The caller then sends nothing more for
  /// the job, except INTERRUPTED after Cancelled.
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
