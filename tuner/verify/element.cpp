#include "tuner/verify/element.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"

namespace cubind::verify {
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
      throw Error(ErrorCode::Internal, "decode_narrow", "not a narrow floating-point type");
  }
}

double largest_finite(const NarrowFormat& format) {
  const int exponent = format.has_infinity ? format.exponent_ones() - 1 : format.exponent_ones();
  const int mantissa = format.has_infinity ? format.mantissa_ones() : format.mantissa_ones() - 1;
  return std::ldexp(1.0 + std::ldexp(mantissa, -format.mantissa_bits), exponent - format.bias());
}

std::uint16_t encode_narrow(DType type, double value) {
  const NarrowFormat format = narrow_format(type);
  const int sign_shift = format.exponent_bits + format.mantissa_bits;
  const auto sign = static_cast<std::uint16_t>((std::signbit(value) ? 1U : 0U) << sign_shift);
  const auto nan_bits = static_cast<std::uint16_t>((1U << sign_shift) - 1U);
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | nan_bits);
  }
  const double magnitude = std::fabs(value);
  // One unit of the last place: constant below the smallest normal number.
  const int smallest = 1 - format.bias();
  const int exponent = magnitude == 0 ? smallest : std::max(std::ilogb(magnitude), smallest);
  const double unit = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double rounded = std::isinf(magnitude) ? magnitude : std::nearbyint(magnitude / unit) * unit;
  if (rounded > largest_finite(format)) {
    const unsigned infinity = static_cast<unsigned>(format.exponent_ones()) << format.mantissa_bits;
    return static_cast<std::uint16_t>(sign | (format.has_infinity ? infinity : nan_bits));
  }
  // Subnormals have the biased exponent 0, and the carry of a mantissa that rounds up lands in the exponent
  // by itself.
  const auto units = static_cast<unsigned>(rounded / unit);
  const unsigned hidden = 1U << format.mantissa_bits;
  const unsigned biased = units < hidden ? 0U : static_cast<unsigned>(exponent - smallest + 1);
  const unsigned body = units < hidden ? units : (biased << format.mantissa_bits) + (units - hidden);
  return static_cast<std::uint16_t>(sign | body);
}

template <typename T>
T load(std::span<const std::byte> data, std::uint64_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::span<std::byte> data, std::uint64_t index, T value) {
  std::memcpy(data.data() + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
T saturated(double value) {
  if (std::isnan(value)) {
    return 0;
  }
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

}  // namespace

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

double element_as_double(DType type, std::span<const std::byte> data, std::uint64_t index) {
  switch (type) {
    case DType::F64:
      return load<double>(data, index);
    case DType::F32:
      return load<float>(data, index);
    case DType::F16:
    case DType::Bf16:
      return decode_narrow(type, load<std::uint16_t>(data, index));
    case DType::E4m3:
    case DType::E5m2:
      return decode_narrow(type, load<std::uint8_t>(data, index));
    default:
      return static_cast<double>(element_as_integer(type, data, index));
  }
}

std::int64_t element_as_integer(DType type, std::span<const std::byte> data, std::uint64_t index) {
  switch (type) {
    case DType::I64:
      return load<std::int64_t>(data, index);
    case DType::I32:
      return load<std::int32_t>(data, index);
    case DType::I8:
      return load<std::int8_t>(data, index);
    case DType::U8:
      return load<std::uint8_t>(data, index);
    default:
      throw Error(ErrorCode::Internal, "element_as_integer", "not an integer type");
  }
}

void store_element(DType type, std::span<std::byte> data, std::uint64_t index, double value) {
  switch (type) {
    case DType::F64:
      store(data, index, value);
      break;
    case DType::F32:
      store(data, index, static_cast<float>(value));
      break;
    case DType::F16:
    case DType::Bf16:
      store(data, index, encode_narrow(type, value));
      break;
    case DType::E4m3:
    case DType::E5m2:
      store(data, index, static_cast<std::uint8_t>(encode_narrow(type, value)));
      break;
    case DType::I64:
      store(data, index, saturated<std::int64_t>(value));
      break;
    case DType::I32:
      store(data, index, saturated<std::int32_t>(value));
      break;
    case DType::I8:
      store(data, index, saturated<std::int8_t>(value));
      break;
    case DType::U8:
      store(data, index, saturated<std::uint8_t>(value));
      break;
  }
}

}  // namespace cubind::verify
