#include "client/arguments.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "tuner/plan/narrow_float.hpp"

namespace cubind {
namespace {

[[noreturn]] void refuse_argument(const std::string& name, const std::string& cause) {
  throw Error(ErrorCode::InvalidArgument, "argument " + name, cause);
}

template <typename T>
ParameterBytes bytes_of(T value) {
  ParameterBytes bytes{};
  static_assert(sizeof value <= sizeof bytes);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <typename T>
ParameterBytes integer_bytes(const Parameter& parameter, std::int64_t value) {
  if (!std::in_range<T>(value)) {
    refuse_argument(parameter.name,
                    std::to_string(value) + " does not fit " + std::string(to_string(parameter.type)));
  }
  return bytes_of(static_cast<T>(value));
}

[[noreturn]] void refuse_missing(const Parameter& parameter, const char* kind) {
  refuse_argument(parameter.name, std::string("is missing: the kernel takes a ") + kind + " of that name");
}

std::string extent_text(const Parameter& parameter) {
  return std::to_string(parameter.extent_bytes) + " bytes of device memory";
}

ParameterBytes pack_buffer(const Parameter& parameter, const ArgumentValue& value) {
  const auto* pointer = std::get_if<cuda::DevicePtr>(&value);
  if (pointer == nullptr) {
    if (std::holds_alternative<std::monostate>(value)) {
      if (parameter.extent_bytes == 0) {
        return bytes_of(cuda::DevicePtr{0});
      }
      refuse_missing(parameter, "buffer");
    }
    refuse_argument(parameter.name, "is a buffer of " + extent_text(parameter) + ", a scalar was given");
  }
  if (*pointer == 0 && parameter.extent_bytes > 0) {
    refuse_argument(parameter.name, "the pointer is null, expected " + extent_text(parameter));
  }
  if (parameter.align_bytes > 1 && *pointer % parameter.align_bytes != 0) {
    refuse_argument(parameter.name, "the pointer is aligned to " + std::to_string(*pointer & -*pointer) +
                                        " bytes, the kernel needs " + std::to_string(parameter.align_bytes));
  }
  return bytes_of(*pointer);
}

ParameterBytes pack_caller_scalar(const Parameter& parameter, const ArgumentValue& value) {
  if (const auto* number = std::get_if<double>(&value)) {
    return pack_scalar(parameter, *number);
  }
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return pack_scalar(parameter, *integer);
  }
  if (std::holds_alternative<std::monostate>(value)) {
    refuse_missing(parameter, "scalar");
  }
  refuse_argument(parameter.name,
                  "is a scalar of type " + std::string(to_string(parameter.type)) + ", a buffer was given");
}

}  // namespace

Arguments& Arguments::set(std::string_view name, ArgumentValue value) {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  if (found == entries_.end()) {
    entries_.push_back({std::string(name), value});
  } else {
    found->value = value;
  }
  return *this;
}

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
    refuse_argument(parameter.name, std::to_string(value) + " is not an integer, the kernel takes " +
                                        std::string(to_string(parameter.type)));
  }
  return pack_scalar(parameter, static_cast<std::int64_t>(value));
}

ParameterBytes pack_scalar(const Parameter& parameter, std::int64_t value) {
  switch (parameter.type) {
    case DType::I64:
      return bytes_of(value);
    case DType::I32:
      return integer_bytes<std::int32_t>(parameter, value);
    case DType::I8:
      return integer_bytes<std::int8_t>(parameter, value);
    case DType::U8:
      return integer_bytes<std::uint8_t>(parameter, value);
    default:
      return pack_scalar(parameter, static_cast<double>(value));
  }
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
      return bytes_of(static_cast<std::uint8_t>(value));
    case DType::F64:
      return bytes_of(static_cast<double>(value));
    case DType::F32:
      return bytes_of(static_cast<float>(value));
    default:
      return bytes_of(encode_narrow(type, static_cast<double>(value)));
  }
}

ParameterBytes pack_argument(const Parameter& parameter, const ArgumentValue& value) {
  return parameter.source == ParameterSource::Buffer ? pack_buffer(parameter, value)
                                                     : pack_caller_scalar(parameter, value);
}

std::vector<ArgumentValue> number_arguments(std::span<const Parameter> parameters,
                                            const Arguments& arguments) {
  std::vector<ArgumentValue> values(parameters.size());
  for (const Arguments::Entry& entry : arguments.entries()) {
    const auto found = std::ranges::find(parameters, entry.name, &Parameter::name);
    if (found == parameters.end()) {
      std::vector<std::string> known;
      std::ranges::transform(parameters, std::back_inserter(known), &Parameter::name);
      refuse_argument(entry.name, "the kernel takes no such argument" + suggestion(entry.name, known));
    }
    values[static_cast<std::size_t>(found - parameters.begin())] = entry.value;
  }
  return values;
}

}  // namespace cubind
