#pragma once

#include <string>

#include "cuda_api/driver_api.hpp"
#include "plan/plan_program.hpp"

namespace cubind {

/// Throws DriverError for a launch that the driver refused with `result`. If a cooperative grid does not fit
/// the GPU, the message says how many blocks fit. `operation` names the launch, whose context is current.
[[noreturn]] void throw_launch_fault(const cuda::DriverApi& api, cuda::Result result, cuda::Function function,
                                     const LaunchShape& shape, const std::string& operation);

}  // namespace cubind
