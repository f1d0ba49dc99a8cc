#include "launch/pack.hpp"

#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "plan/narrow_float.hpp"

namespace cubind {
namespace {

[[noreturn]] void refuse_value(const Parameter& parameter, const std::string& cause) {
  throw Error(ErrorCode::InvalidArgument, "argument " + parameter.name, cause);
}

template <typename T>
ParameterBytes bytes_of(T value) {
  ParameterBytes bytes{};
  static_assert(sizeof value <= sizeof bytes);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

ParameterBytes pack_pointer(cuda::DevicePtr pointer) { return bytes_of(pointer); }

ParameterBytes pack_scalar(const Parameter& parameter, double value) {
  switch (parameter.type) {
    case DType::F64:
      return bytes_of(value);
    case DType::F32:
      return bytes_of(static_cast<float>(value));
    case DType::F16:
    case DType::Bf16:
    case DType::E4m3:
    case DType::E5m2:
      return bytes_of(encode_narrow(parameter.type, value));
    default:
      break;
  }
  if (!(std::fabs(value) < 0x1p63) || value != std::floor(value)) {
    refuse_value(parameter, std::to_string(value) + " is not an integer, the kernel takes " +
                                std::string(to_string(parameter.type)));
  }
  return pack_scalar(parameter, static_cast<std::int64_t>(value));
}

ParameterBytes pack_scalar(const Parameter& parameter, std::int64_t value) {
  if (!holds_value(parameter.type, value)) {
    refuse_value(parameter,
                 std::to_string(value) + (parameter.type == DType::Bool
                                              ? " is neither 0 nor 1, the kernel takes a bool"
                                              : " does not fit " + std::string(to_string(parameter.type))));
  }
  return pack_number(parameter.type, value);
}

ParameterBytes pack_number(DType type, std::int64_t value) {
  switch (type) {
    case DType::I64:
      return bytes_of(value);
    case DType::I32:
      return bytes_of(static_cast<std::int32_t>(value));
    case DType::I8:
      return bytes_of(static_cast<std::int8_t>(value));
    case DType::U8:
    case DType::Bool:
      return bytes_of(static_cast<std::uint8_t>(value));
    case DType::U64:
      return bytes_of(static_cast<std::uint64_t>(value));
    case DType::U32:
      return bytes_of(static_cast<std::uint32_t>(value));
    case DType::I16:
      return bytes_of(static_cast<std::int16_t>(value));
    case DType::U16:
      return bytes_of(static_cast<std::uint16_t>(value));
    case DType::F64:
      return bytes_of(static_cast<double>(value));
    case DType::F32:
      return bytes_of(static_cast<float>(value));
    default:
      return bytes_of(encode_narrow(type, static_cast<double>(value)));
  }
}

}  // namespace cubind
