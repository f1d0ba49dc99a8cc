// One GPU from open() to the end of the worker: lock, consent, context, memory, timer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "schemas/worker.pb.h"
#include "tuner/measure/throttle.hpp"
#include "tuner/worker/consent.hpp"
#include "tuner/worker/cupti_timer.hpp"
#include "tuner/worker/device_memory.hpp"
#include "tuner/worker/driver_context.hpp"
#include "tuner/worker/gpu_lock.hpp"
#include "tuner/worker/l2_flush.hpp"
#include "tuner/worker/nvml_monitor.hpp"
#include "tuner/worker/own_kernels.hpp"
#include "tuner/worker/timer.hpp"

namespace cubind::worker {

/// Takes the GPU's lock at once, but memory and a context only with activate(): a GPU that another process
/// uses is left alone until the agent decides otherwise. One thread.
class GpuSession {
 public:
  /// Throws Error(FailedPrecondition) without a driver, Error(NotFound) without that GPU, and Error(Aborted)
  /// where another tuner holds the GPU.
  GpuSession(const v1::OpenDevice& request, Lend lend);

  /// How the GPU is lent from now on.
  void set_lend(Lend lend) { lend_ = std::move(lend); }
  void activate();
  /// For the next job, with a context alone: what is free now is shared again. Everything of the earlier job
  /// has been freed. Throws DriverError if the context is lost.
  void begin_anew();
  const v1::OpenDevice& request() const { return request_; }
  bool active() const { return timer_ != nullptr; }
  /// The other user of the GPU now; empty: none.
  const std::string& others();
  /// The last reading of others() where it is as good as one now.
  const std::string& others_lately();
  v1::DeviceInfo info() const;

  DriverContext& context() { return context_; }
  const NvmlMonitor& monitor() const { return monitor_; }
  /// Requires a context.
  MemoryBudget& budget() { return *budget_; }
  OwnKernels& kernels() { return *kernels_; }
  Timer& timer() { return *timer_; }
  measure::ThrottlePolicy& throttle() { return throttle_; }
  /// Made when it is first wanted: it is as large as twice the L2.
  const L2Flush& flush();
  std::uint64_t free_memory_bytes() const { return context_.free_memory_bytes(); }
  std::uint64_t allocated_bytes() const { return budget_ ? budget_->taken_bytes() : 0; }

  /// The GPU has just worked for us.
  void worked();
  /// Its clock is steady now.
  void warmed_up();
  /// Its clock was steady, and it has not rested since.
  bool is_warm() const;

 private:
  void make_timer();

  v1::OpenDevice request_;
  DriverContext context_;
  NvmlMonitor monitor_;
  GpuLock lock_;
  Lend lend_;
  Consent consent_;
  measure::ThrottlePolicy throttle_;
  std::chrono::steady_clock::time_point last_work_{}, warm_until_{};
  std::string others_;
  std::chrono::steady_clock::time_point others_read_{};
  std::unique_ptr<CuptiRecorder> recorder_;
  std::string timer_note_;
  std::optional<MemoryBudget> budget_;
  std::unique_ptr<OwnKernels> kernels_;
  std::unique_ptr<Timer> timer_;
  std::unique_ptr<L2Flush> flush_;
};

}  // namespace cubind::worker
