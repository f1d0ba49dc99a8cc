#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/subprocess.hpp"
#include "base/unique_fd.hpp"
#include "tuner/agent/device/device_link.hpp"
#include "tuner/agent/device/spare_worker.hpp"
#include "tuner/agent/device/worker_starter.hpp"

namespace cubind {

/// `cubind-worker device` over a socketpair. The process has a group of its own, which is killed when a
/// deadline passes.
class WorkerLink final : public DeviceLink {
 public:
  /// Without `spare` every worker is a fresh one. Both must outlive this object.
  explicit WorkerLink(const WorkerStarter& starter, SpareWorker* spare = nullptr)
      : starter_(starter), spare_(spare) {}
  ~WorkerLink() override;

  void start() override;
  bool start_spare() override;
  void stop() noexcept override;
  bool is_started() const override;
  CallResult call(const v1::DeviceRequest& request, std::chrono::milliseconds deadline,
                  const std::function<void()>& meanwhile) override;
  void interrupt() noexcept override;

 private:
  CallResult receive(std::chrono::steady_clock::time_point until);
  CallResult gone(bool timed_out, const std::string& what);
  void go_on_with(WorkerProcess worker);  // with mutex_ held
  void check_wanted() const;              // with mutex_ held

  const WorkerStarter& starter_;
  SpareWorker* spare_;
  UniqueFd socket_;

  mutable std::mutex mutex_;           // held while the process is made, replaced or killed
  std::optional<Subprocess> process_;  // guarded by mutex_
  bool interrupted_ = false;           // guarded by mutex_: no worker is started any more
};

}  // namespace cubind
