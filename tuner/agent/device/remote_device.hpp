#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/worker.pb.h"
#include "tuner/agent/device/device_link.hpp"
#include "tuner/agent/lease/gpu_lends.hpp"
#include "tuner/agent/lease/job_stop.hpp"

namespace cubind {

/// The time limits of a device worker. Kernels may hang, so every request has a deadline.
struct DeviceDeadlines {
  std::chrono::milliseconds open{60'000};
  std::chrono::milliseconds prepare{30'000};  // plus prepare_time()
  std::chrono::milliseconds load{30'000};
  /// Verifying fills the inputs and runs the reference again: the limit is `run` plus `run_prepares` times
  /// the duration of preparing.
  std::chrono::milliseconds run{10'000};
  unsigned run_prepares = 20;
  std::chrono::milliseconds control{10'000};
  /// After this idle time a GPU is warmed up again.
  std::chrono::milliseconds cools_down{100};
};

/// A device worker and its state during one job. It is opened when first needed and ends with this object.
/// leave_open() lets the worker outlive this object, so that the job's result need not wait for the worker's
/// end. The next job's object finds the worker at the link and opens it again: the worker keeps its context
/// and frees the earlier job's memory.
///
/// After a sticky fault, a death or a deadline the worker is gone. The next request starts a new worker, and
/// setups and loads are repeated when they are next requested. generation() distinguishes workers, because a
/// fault counts only when it repeats in another worker.
///
/// Processes that lend the GPU do not count as foreign use. If a lend ends during a request, its reply
/// reports foreign use: its measurements are void.
///
/// A reply's `outcome` is RUNTIME if the worker died and TIMEOUT if it did not answer; both are sticky. An
/// unspecified outcome is a bug and throws Error(Internal). If a worker cannot be started or opened, the call
/// throws Error(Unavailable). Used from the job's thread.
class RemoteDevice {
 public:
  /// `lend` returns the GPU's current lend; empty: the GPU is never lent.
  RemoteDevice(DeviceLink& link, v1::OpenDevice open, JobStop& stop, DeviceDeadlines deadlines = {},
               std::function<GpuLend()> lend = {});
  ~RemoteDevice();
  RemoteDevice(const RemoteDevice&) = delete;
  RemoteDevice& operator=(const RemoteDevice&) = delete;

  /// The last worker's description of the device; throws Error(Unavailable) before a worker was opened.
  const v1::DeviceInfo& info() const;
  bool has_info() const { return info_.has_value(); }
  /// Whether the last reply reported foreign use.
  bool foreign_use() const { return foreign_use_; }
  /// The other user of the GPU, and why a lend does not count.
  std::string foreign_because() const;
  bool is_lent() const { return lend_now().is_lent(); }
  v1::DeviceReply probe();

  /// Does nothing if the setup is already prepared; otherwise `make` builds the request.
  v1::DeviceReply prepare(std::uint32_t setup, const std::function<v1::PrepareProblem()>& make);
  void release(std::uint32_t setup);
  /// Returns whether any setup was prepared.
  bool release_all();
  /// Loads a trial.
  v1::DeviceReply load(std::uint32_t trial, const std::function<v1::LoadTrial()>& make);
  /// Runs `work` once, while the worker handles the next request. An exception of `work` comes out of that
  /// request and ends the worker.
  void meanwhile(std::function<void()> work) { meanwhile_ = std::move(work); }
  /// Unloads the trial with the next request.
  void unload(std::uint32_t trial);
  v1::DeviceReply verify(const v1::VerifyTrial& request);
  /// Sets warm_up if the GPU has cooled down since the last request.
  v1::DeviceReply measure(v1::MeasureTrials request);

  /// The generation of the worker that answered last; 0: none yet.
  std::uint64_t generation() const { return generation_; }
  /// Ends the worker, which closes the context and frees the memory. The next request starts another one.
  void restart();
  /// Keeps the worker alive after this object, unless something went wrong in it: a fault, a wrong result, an
  /// impossible time.
  void leave_open() { leaves_open_ = true; }

 private:
  v1::DeviceReply call(v1::DeviceRequest request, std::chrono::milliseconds deadline);
  DeviceLink::CallResult call_and_work(const v1::DeviceRequest& request, std::chrono::milliseconds deadline);
  /// The failure to open a worker; absent if one is open.
  std::optional<v1::DeviceReply> open();
  DeviceLink::CallResult send_open();
  GpuLend lend_now() const { return lend_ ? lend_() : GpuLend(); }
  /// Adds the processes that lend the GPU to the request, and returns the lend to compare the reply with.
  GpuLend add_lend(v1::DeviceRequest& request) const;
  void note_foreign_use(v1::DeviceReply& reply, const GpuLend& lend);
  void learn(const v1::DeviceReply& reply);
  void lose();
  std::chrono::milliseconds run_deadline() const;

  DeviceLink& link_;
  v1::OpenDevice open_;
  JobStop& stop_;
  DeviceDeadlines deadlines_;
  std::function<GpuLend()> lend_;
  JobStop::Hook hook_;

  bool running_ = false;
  bool is_sound_ = true;  // nothing went wrong in this worker
  bool leaves_open_ = false;
  bool foreign_use_ = false;
  std::string foreign_because_;
  std::uint64_t generation_ = 0;
  std::optional<v1::DeviceInfo> info_;
  std::set<std::uint32_t> prepared_;
  std::map<std::uint32_t, v1::DeviceReply> loaded_;  // with the replies, whose entries are needed again
  std::vector<std::uint32_t> unloaded_;              // still loaded in the worker
  std::function<void()> meanwhile_;
  std::chrono::steady_clock::duration meanwhile_took_{};  // during the last request
  std::chrono::milliseconds prepare_took_{0};             // the longest that succeeded
  std::chrono::steady_clock::time_point last_run_{};
  /// Until then the GPU may have worked for this agent, including the previous job.
  std::chrono::steady_clock::time_point worked_until_ = std::chrono::steady_clock::now();
};

}  // namespace cubind
