// Scalars of a launch plan in the form of the driver's parameter block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cuda_api/driver_types.hpp"
#include "plan/launch_plan.hpp"

namespace cubind {

/// A parameter's bytes, as the driver copies them.
using ParameterBytes = std::array<std::byte, 8>;

ParameterBytes pack_pointer(cuda::DevicePtr pointer);

/// Rounds to nearest even. Throws Error(InvalidArgument) at the argument's name if an integer parameter
/// cannot hold the value.
ParameterBytes pack_scalar(const Parameter& parameter, double value);
ParameterBytes pack_scalar(const Parameter& parameter, std::int64_t value);

/// Packs a number that the launch plan has computed and that fits the type.
ParameterBytes pack_number(DType type, std::int64_t value);

}  // namespace cubind
