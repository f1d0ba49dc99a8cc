// The GPU of the current process, as a question to the daemon describes it.
#pragma once

#include <cstddef>
#include <optional>

#include "client/query.hpp"
#include "cuda_api/driver_api.hpp"

namespace cubind {

/// The device of the current CUDA context, else the first visible one. Reads facts only: no context is made.
/// The facts are kept as long as the process lives. Throws Error(FailedPrecondition) without a driver or
/// without a device; the message says how to ask for one by its label. Safe on many threads.
Gpu current_gpu();

/// A visible device by its number, whatever the current context is.
Gpu gpu_at(std::size_t ordinal);

/// A device and the driver that shows it.
struct VisibleGpu {
  const cuda::DriverApi& driver;  // lives as long as the process
  cuda::DeviceOrdinal device = 0;
};

/// As gpu_at(), or as current_gpu() without a number.
VisibleGpu visible_gpu(std::optional<std::size_t> ordinal);
Gpu gpu_facts(const VisibleGpu& gpu);

/// Whether there is a driver and a device.
bool has_gpu();

}  // namespace cubind
