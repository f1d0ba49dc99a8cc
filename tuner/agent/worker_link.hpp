#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.hpp"
#include "base/unique_fd.hpp"
#include "tuner/agent/device_link.hpp"

namespace cubind {

/// `cubind-worker device` over a socketpair. The process has a group of its own, which is killed when a
/// deadline passes.
class WorkerLink final : public DeviceLink {
 public:
  /// `arguments` follow `device --fd N`: none for a GPU, `--replay TABLE ...` for the replay device. The
  /// worker gets the environment of this process, with these variables ("NAME=VALUE") in it. `spawner` must
  /// outlive this object: its thread is the worker's parent.
  WorkerLink(Spawner& spawner, std::string program, std::vector<std::string> arguments,
             std::vector<std::string> environment);
  ~WorkerLink() override;

  void start() override;
  void stop() noexcept override;
  bool is_started() const override;
  CallResult call(const v1::DeviceRequest& request, std::chrono::milliseconds deadline) override;
  void interrupt() noexcept override;

 private:
  CallResult gone(bool timed_out, const std::string& what);

  Spawner& spawner_;
  std::string program_;
  std::vector<std::string> arguments_;
  std::vector<std::string> environment_;
  UniqueFd socket_;

  mutable std::mutex mutex_;           // held while the process is made, replaced or killed
  std::optional<Subprocess> process_;  // guarded by mutex_
  bool interrupted_ = false;           // guarded by mutex_: no worker is started any more
};

}  // namespace cubind
