#include "client/narrow_float.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace cubind {
namespace {

struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity;
};

Format format_of(DType type) {
  switch (type) {
    case DType::F16:
      return {5, 10, true};
    case DType::Bf16:
      return {8, 7, true};
    case DType::E5m2:
      return {5, 2, true};
    case DType::E4m3:
      return {4, 3, false};
    default:
      throw Error(ErrorCode::Internal, "narrow_float", "not a narrow type");
  }
}

}  // namespace

std::uint16_t narrow_float(DType type, double value) {
  const Format format = format_of(type);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int sign = std::signbit(value) ? 1 << (format.exponent_bits + format.mantissa_bits) : 0;
  const int all_ones = ((1 << format.exponent_bits) - 1) << format.mantissa_bits;
  const int nan = format.has_infinity ? all_ones | 1 << (format.mantissa_bits - 1)
                                      : all_ones | ((1 << format.mantissa_bits) - 1);
  const int overflow = format.has_infinity ? all_ones : nan;
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | nan);
  }
  const double magnitude = std::fabs(value);
  if (magnitude == 0) {
    return static_cast<std::uint16_t>(sign);
  }
  if (std::isinf(magnitude) || std::ilogb(magnitude) > bias + 1) {
    return static_cast<std::uint16_t>(sign | overflow);
  }
  // The value in units of the last place at this exponent (that of the smallest normal number below it):
  // rounding up to the next power of two carries into the exponent by itself.
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  const int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent)));
  const int bits = ((exponent + bias - 1) << format.mantissa_bits) + units;
  return static_cast<std::uint16_t>(sign | (bits < overflow ? bits : overflow));
}

}  // namespace cubind
