// The GPU's state during a measurement, and its other users.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/facts/facts.hpp"
#include "tuner/worker/consent.hpp"
#include "tuner/worker/driver_context.hpp"
#include "tuner/worker/own_processes.hpp"

namespace cubind::worker {

/// Reads alone: clocks are never changed. Without NVML every reading is zero. One thread.
class NvmlMonitor {
 public:
  explicit NvmlMonitor(const DriverContext& context) : NvmlMonitor(context.nvml(), context.nvml_device()) {}
  NvmlMonitor(const cuda::NvmlApi* nvml, cuda::NvmlDevice device, OwnProcesses own = {})
      : nvml_(nvml), device_(device), own_(std::move(own)) {}

  /// Readings: whether a block is called throttled or contended is for others to say.
  Conditions conditions() const;
  std::uint32_t sm_mhz() const;
  /// Without idle times.
  GpuUse use() const;
  /// Of the listed processes that are of our own user, where NVML tells when processes worked.
  IdleTimes idle_times(const std::vector<std::uint32_t>& listed) const;

 private:
  const cuda::NvmlApi* nvml_;
  cuda::NvmlDevice device_;
  OwnProcesses own_;
};

}  // namespace cubind::worker
