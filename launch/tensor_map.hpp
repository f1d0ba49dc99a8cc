#pragma once

#include <string>

#include "cuda_api/driver_api.hpp"
#include "plan/tensor_map.hpp"

namespace cubind {

/// The descriptor of a tensor map for the buffer at `base`, whose name is for messages. It computes on the
/// host alone. Throws cuda::DriverError where the driver does not encode what the plan's checks let pass.
cuda::TensorMap encode(const cuda::DriverApi& api, const TensorMap& map, cuda::DevicePtr base,
                       const std::string& buffer);

}  // namespace cubind
