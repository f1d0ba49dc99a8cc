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
#include "tuner/agent/device_link.hpp"
#include "tuner/agent/gpu_lends.hpp"
#include "tuner/agent/job_stop.hpp"

namespace cubind {

/// The limits of a device worker. Kernels may hang, so every request has an end.
struct DeviceDeadlines {
  std::chrono::milliseconds open{60'000};
  std::chrono::milliseconds prepare{30'000};  // and what prepare_time() adds
  std::chrono::milliseconds load{30'000};
  /// Verifying fills the inputs and runs the reference again: this, and so many times what preparing took.
  std::chrono::milliseconds run{10'000};
  unsigned run_prepares = 20;
  std::chrono::milliseconds control{10'000};
  /// A GPU that idled for this long is warmed up again.
  std::chrono::milliseconds cools_down{100};
};

/// A device worker and its state for the length of one job: opened when first needed, ended with this object.
/// leave_open() lets the worker outlive it, so that the job's result need not wait for the worker's end. The
/// next job's object finds it at the link and opens it again: the worker keeps its context and frees what the
/// earlier job had.
///
/// After a sticky fault, a death or a deadline the worker is gone, and the next request begins with a fresh
/// one; the next request for a setup or a load then repeats it. generation() tells workers apart, because a
/// fault counts only when it has repeated in another one.
///
/// Processes that lend the GPU are no foreign use. If a lend ends during a request, its reply says foreign
/// use: what it has measured is void.
///
/// Replies: `outcome` is RUNTIME if the worker died and TIMEOUT if it kept silent, both sticky. An
/// unspecified outcome is a fault of ours and throws Error(Internal). A worker that cannot be started or
/// opened throws Error(Unavailable). Used from the job's thread.
class RemoteDevice {
 public:
  /// `lend` tells how the GPU is lent now; empty: never.
  RemoteDevice(DeviceLink& link, v1::OpenDevice open, JobStop& stop, DeviceDeadlines deadlines = {},
               std::function<GpuLend()> lend = {});
  ~RemoteDevice();
  RemoteDevice(const RemoteDevice&) = delete;
  RemoteDevice& operator=(const RemoteDevice&) = delete;

  /// Of the last worker; throws Error(Unavailable) before one was opened.
  const v1::DeviceInfo& info() const;
  bool has_info() const { return info_.has_value(); }
  /// Foreign use, as of the last reply.
  bool foreign_use() const { return foreign_use_; }
  /// The other user of the GPU, and why a lend does not count.
  std::string foreign_because() const;
  bool is_lent() const { return lend_now().is_lent(); }
  v1::DeviceReply probe();

  /// Does nothing if the setup is prepared already; otherwise `make` builds the request.
  v1::DeviceReply prepare(std::uint32_t setup, const std::function<v1::PrepareProblem()>& make);
  void release(std::uint32_t setup);
  /// Whether there was any.
  bool release_all();
  /// Loads a trial.
  v1::DeviceReply load(std::uint32_t trial, const std::function<v1::LoadTrial()>& make);
  /// Done once, while the worker is at the next request. What it throws comes from that request, and ends the
  /// worker.
  void meanwhile(std::function<void()> work) { meanwhile_ = std::move(work); }
  /// With the next request.
  void unload(std::uint32_t trial);
  v1::DeviceReply verify(const v1::VerifyTrial& request);
  /// Sets warm_up where the GPU has cooled down since the last request.
  v1::DeviceReply measure(v1::MeasureTrials request);

  /// Of the worker that answered last; 0: none yet.
  std::uint64_t generation() const { return generation_; }
  /// Ends the worker: the context is closed and the memory free. The next request starts another.
  void restart();
  /// The worker does not end with this object, unless anything went wrong in it: a fault, a wrong result, a
  /// time that cannot be.
  void leave_open() { leaves_open_ = true; }

 private:
  v1::DeviceReply call(v1::DeviceRequest request, std::chrono::milliseconds deadline);
  DeviceLink::CallResult call_and_work(const v1::DeviceRequest& request, std::chrono::milliseconds deadline);
  /// Absent: a worker is open.
  std::optional<v1::DeviceReply> open();
  DeviceLink::CallResult send_open();
  GpuLend lend_now() const { return lend_ ? lend_() : GpuLend(); }
  /// Tells the worker who lends the GPU; the lend that the reply is held against.
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
  std::map<std::uint32_t, v1::DeviceReply> loaded_;  // with the reply: its entries are asked for again
  std::vector<std::uint32_t> unloaded_;              // the worker has them still
  std::function<void()> meanwhile_;
  std::chrono::steady_clock::duration meanwhile_took_{};  // during the last request
  std::chrono::milliseconds prepare_took_{0};             // at most, where it succeeded
  std::chrono::steady_clock::time_point last_run_{};
  /// The GPU may have worked for us until then, also for the job before.
  std::chrono::steady_clock::time_point worked_until_ = std::chrono::steady_clock::now();
};

}  // namespace cubind
