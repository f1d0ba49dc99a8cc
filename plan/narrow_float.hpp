// Floating-point types below 32 bits, as bits. `type` is F16, Bf16, E4m3 (torch's float8_e4m3fn) or E5m2; an
// 8-bit type uses the low byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/dtype.hpp"

namespace cubind {

/// Rounds to nearest even; beyond the largest finite value: infinity, or NaN for e4m3, which has none.
std::uint16_t encode_narrow(DType type, double value);

double decode_narrow(DType type, std::uint16_t bits);

/// An element of packed data of any floating-point type, also f32 and f64.
double floating_element(DType type, std::span<const std::byte> data, std::uint64_t index);

}  // namespace cubind
