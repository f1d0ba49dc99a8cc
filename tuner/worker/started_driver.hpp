// What a device worker does before a job needs its GPU.
#pragma once

#include <memory>

#include "cuda_api/nvml_api.hpp"

namespace cubind::worker {

/// Initialises the driver and NVML, which takes half of opening a GPU (H200: 0.11 of 0.21 s), reads each GPU
/// once, since NVML takes 10 ms for its first readings, and keeps them initialised. The process then has a
/// few MiB on the GPU, but no context, and NVML does not list it.
/// A failure is reported by the opening, which does the same again.
class StartedDriver {
 public:
  StartedDriver();

 private:
  std::shared_ptr<const cuda::NvmlApi> nvml_;
};

}  // namespace cubind::worker
