#include "plan/narrow_float.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"

namespace cubind {
namespace {

// Exponent and mantissa widths of a format with a sign bit on top.
struct NarrowFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // e4m3 (the fn flavour) has none: all ones is NaN, everything else a number

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int exponent_ones() const { return (1 << exponent_bits) - 1; }
  int mantissa_ones() const { return (1 << mantissa_bits) - 1; }
};

NarrowFormat narrow_format(DType type) {
  switch (type) {
    case DType::F16:
      return {5, 10, true};
    case DType::Bf16:
      return {8, 7, true};
    case DType::E4m3:
      return {4, 3, false};
    case DType::E5m2:
      return {5, 2, true};
    default:
      throw Error(ErrorCode::Internal, "narrow float", "not a narrow floating-point type");
  }
}

}  // namespace

std::uint16_t encode_narrow(DType type, double value) {
  const NarrowFormat format = narrow_format(type);
  const int sign = std::signbit(value) ? 1 << (format.exponent_bits + format.mantissa_bits) : 0;
  const int all_ones = format.exponent_ones() << format.mantissa_bits;
  const int nan =
      format.has_infinity ? all_ones | 1 << (format.mantissa_bits - 1) : all_ones | format.mantissa_ones();
  const int overflow = format.has_infinity ? all_ones : nan;
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | nan);
  }
  const double magnitude = std::fabs(value);
  if (magnitude == 0) {
    return static_cast<std::uint16_t>(sign);
  }
  if (std::isinf(magnitude) || std::ilogb(magnitude) > format.bias() + 1) {
    return static_cast<std::uint16_t>(sign | overflow);
  }
  // The value in units of the last place at this exponent (that of the smallest normal number below it):
  // rounding up to the next power of two carries into the exponent by itself.
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias());
  const int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent)));
  const int bits = ((exponent + format.bias() - 1) << format.mantissa_bits) + units;
  return static_cast<std::uint16_t>(sign | (bits < overflow ? bits : overflow));
}

double decode_narrow(DType type, std::uint16_t bits) {
  const NarrowFormat format = narrow_format(type);
  const int mantissa = bits & format.mantissa_ones();
  const int exponent = (bits >> format.mantissa_bits) & format.exponent_ones();
  const bool negative = ((bits >> (format.exponent_bits + format.mantissa_bits)) & 1) != 0;
  double magnitude = 0;
  if (exponent == format.exponent_ones() && format.has_infinity) {
    magnitude =
        mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == format.exponent_ones() && mantissa == format.mantissa_ones()) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, 1 - format.bias() - format.mantissa_bits);
  } else {
    magnitude =
        std::ldexp(mantissa + (1 << format.mantissa_bits), exponent - format.bias() - format.mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

double floating_element(DType type, std::span<const std::byte> data, std::uint64_t index) {
  const auto load = [&]<typename T>(T value) {
    std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
    return value;
  };
  switch (type) {
    case DType::F64:
      return load(double{});
    case DType::F32:
      return load(float{});
    default:
      return decode_narrow(type, size_of(type) == 2 ? load(std::uint16_t{}) : load(std::uint8_t{}));
  }
}

}  // namespace cubind
