// A real cubind-worker, spoken to as the agent does.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/subprocess.hpp"
#include "base/unique_fd.hpp"
#include "schemas/worker.pb.h"

namespace cubind::test {

class WorkerProcess {
 public:
  explicit WorkerProcess(std::vector<std::string> arguments);

  /// Absent when the deadline passes first.
  std::optional<v1::DeviceReply> ask_within(const v1::DeviceRequest& request,
                                            std::chrono::milliseconds deadline);
  /// Fails the test after a minute.
  v1::DeviceReply ask(const v1::DeviceRequest& request);

  /// Fails the test where the process does not end by itself within ten seconds.
  ExitStatus ended();

  int fd() const { return socket_.get(); }
  Subprocess& process() { return process_; }

 private:
  explicit WorkerProcess(std::pair<UniqueFd, Subprocess> started)
      : socket_(std::move(started.first)), process_(std::move(started.second)) {}

  UniqueFd socket_;
  Subprocess process_;
};

/// A device worker with the GPU open. Fails the test where it does not open.
class DeviceWorkerProcess : public WorkerProcess {
 public:
  explicit DeviceWorkerProcess(const v1::OpenDevice& open = {});
  const v1::DeviceInfo& info() const { return info_; }

 private:
  v1::DeviceInfo info_;
};

/// The cubin of kernels.cu for the GPU that is there, compiled once by a compile worker with the machine's
/// NVRTC. All its kernels are extern "C": symbols are names.
const std::string& kernels_cubin();

}  // namespace cubind::test
