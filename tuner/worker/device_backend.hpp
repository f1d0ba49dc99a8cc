// The device of a device worker. There are two: the CUDA device and the replay device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schemas/worker.pb.h"
#include "tuner/worker/consent.hpp"

namespace cubind::worker {

/// One method for each request of worker.proto, whose comments are the contract of the messages.
///
/// A kernel's fault is data: the reply's `outcome` and `detail`. A caller's fault (an unknown setup, a plan
/// that names no buffer of the setup) is an Error, which the request loop turns into a reply without an
/// outcome. A reply with `sticky` set is the device's last: its state is lost and the process ends after
/// sending it.
///
/// Used from one thread. open() comes first; any other method before it is Error(FailedPrecondition).
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  /// Before each request: who lends the GPU.
  virtual void set_lend(Lend) {}
  /// Fills `info`. `foreign_use` is set if another process uses the GPU; the device then takes no memory
  /// before prepare(). Opened again, for the next job, it frees all setups and trials and keeps its context
  /// if the request is the same.
  virtual v1::DeviceReply open(const v1::OpenDevice& request) = 0;
  /// Replaces a setup of the same number. OUT_OF_MEMORY leaves nothing of the setup behind.
  virtual v1::DeviceReply prepare(const v1::PrepareProblem& request) = 0;
  virtual v1::DeviceReply load(const v1::LoadTrial& request) = 0;
  virtual v1::DeviceReply verify(const v1::VerifyTrial& request) = 0;
  virtual v1::DeviceReply measure(const v1::MeasureTrials& request) = 0;
  /// Unloading or releasing something absent is fine: the caller tidies up after outcomes of all kinds.
  virtual void unload(std::uint32_t trial) = 0;
  virtual v1::DeviceReply release(const v1::ReleaseProblem& request) = 0;
  virtual v1::DeviceReply probe(const v1::ProbeDevice& request) = 0;
};

/// Initialises the driver and NVML. Where that fails open() tries again, and its error names what was tried.
std::unique_ptr<DeviceBackend> make_cuda_device();

/// `arguments`: --replay TABLE.
std::unique_ptr<DeviceBackend> make_replay_device(const std::vector<std::string>& arguments);

}  // namespace cubind::worker
