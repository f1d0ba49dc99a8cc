// The GPU's state during a measurement, and its other users.
#pragma once

#include <cstdint>

#include "tuner/plan/evidence.hpp"
#include "tuner/worker/consent.hpp"
#include "tuner/worker/driver_context.hpp"

namespace cubind::worker {

/// Reads alone: clocks are never changed. Without NVML every reading is zero. One thread.
class NvmlMonitor {
 public:
  explicit NvmlMonitor(const DriverContext& context)
      : nvml_(context.nvml()), device_(context.nvml_device()) {}

  /// Readings: whether a block is called throttled or contended is for others to say.
  BlockConditions conditions() const;
  std::uint32_t sm_mhz() const;
  GpuUse use() const;

 private:
  const cuda::NvmlApi* nvml_;
  cuda::NvmlDevice device_;
};

}  // namespace cubind::worker
