// Scalars of a launch plan as the driver's parameter block has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cuda_api/driver_types.hpp"
#include "tuner/plan/launch_plan.hpp"

namespace cubind {

/// A parameter's bytes, as the driver copies them.
using ParameterBytes = std::array<std::byte, 8>;

ParameterBytes pack_pointer(cuda::DevicePtr pointer);

/// Rounds to nearest even. Throws Error(InvalidArgument) at the argument's name if an integer parameter
/// cannot hold the value.
ParameterBytes pack_scalar(const Parameter& parameter, double value);
ParameterBytes pack_scalar(const Parameter& parameter, std::int64_t value);

/// A number that the launch plan has computed, and found to fit.
ParameterBytes pack_number(DType type, std::int64_t value);

}  // namespace cubind
