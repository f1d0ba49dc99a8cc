#include "tuner/verify/element.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "plan/narrow_float.hpp"

namespace cubind::verify {
namespace {

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
    default:
      throw Error(ErrorCode::Internal, "store_element", "not an element type");
  }
}

}  // namespace cubind::verify
