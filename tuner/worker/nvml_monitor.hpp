// What the GPU does while it is measured, and who else uses it.
#pragma once

#include <cstdint>

#include "tuner/worker/consent.hpp"
#include "tuner/worker/driver_context.hpp"

namespace cubind::worker {

/// Readings; zero where NVML does not tell.
struct Conditions {
  std::uint32_t sm_mhz = 0;
  std::uint32_t memory_mhz = 0;
  std::uint32_t temperature_c = 0;
  std::uint32_t power_mw = 0;
  std::uint64_t throttle_reasons = 0;
};

/// Reads alone: clocks are never changed. Without NVML every reading is zero. One thread.
class NvmlMonitor {
 public:
  explicit NvmlMonitor(const DriverContext& context)
      : nvml_(context.nvml()), device_(context.nvml_device()) {}

  Conditions conditions() const;
  std::uint32_t sm_mhz() const;
  GpuUse use() const;

 private:
  const cuda::NvmlApi* nvml_;
  cuda::NvmlDevice device_;
};

}  // namespace cubind::worker
