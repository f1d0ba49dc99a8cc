// Floating-point types below 32 bits, as the bits of a scalar parameter.
#pragma once

#include <cstdint>

#include "tuner/plan/dtype.hpp"

namespace cubind {

/// Rounds to nearest even; beyond the largest finite value: infinity, or NaN for e4m3, which has none. `type`
/// is F16, Bf16, E4m3 (torch's float8_e4m3fn) or E5m2; an 8-bit type uses the low byte.
std::uint16_t narrow_float(DType type, double value);

}  // namespace cubind
