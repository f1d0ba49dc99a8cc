// The current process's GPU, in the form that a question to the daemon needs.
#pragma once

#include <cstddef>
#include <optional>

#include "client/query.hpp"
#include "cuda_api/driver_api.hpp"

namespace cubind {

/// The device of the current CUDA context, else the first visible one. Reads facts without creating a
/// context, and caches them for the process's lifetime. Throws Error(FailedPrecondition) if there is no
/// driver or no device; the message says how to ask for a device by its label. Safe on many threads.
Gpu current_gpu();

/// A visible device by its number, independent of the current context.
Gpu gpu_at(std::size_t ordinal);

/// A device and the driver that shows it.
struct VisibleGpu {
  const cuda::DriverApi& driver;  // lives as long as the process
  cuda::DeviceOrdinal device = 0;
};

/// Like gpu_at(), or without a number like current_gpu().
VisibleGpu visible_gpu(std::optional<std::size_t> ordinal);
Gpu gpu_facts(const VisibleGpu& gpu);

/// Whether a driver and a device are available.
bool has_gpu();

}  // namespace cubind
