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

const Arguments::Entry& find(const Parameter& parameter, const Arguments& arguments, const char* kind) {
  const auto found = std::ranges::find(arguments.entries(), parameter.name, &Arguments::Entry::name);
  if (found == arguments.entries().end()) {
    refuse_argument(parameter.name, std::string("is missing: the kernel takes a ") + kind + " of that name");
  }
  return *found;
}

std::string extent_text(const Parameter& parameter) {
  return std::to_string(parameter.extent_bytes) + " bytes of device memory";
}

ParameterBytes pack_buffer(const Parameter& parameter, const Arguments& arguments) {
  const auto* pointer = std::get_if<cuda::DevicePtr>(&find(parameter, arguments, "buffer").value);
  if (pointer == nullptr) {
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

ParameterBytes pack_caller_scalar(const Parameter& parameter, const Arguments& arguments) {
  const Arguments::Entry& entry = find(parameter, arguments, "scalar");
  if (const auto* number = std::get_if<double>(&entry.value)) {
    return pack_scalar(parameter, *number);
  }
  if (const auto* integer = std::get_if<std::int64_t>(&entry.value)) {
    return pack_scalar(parameter, *integer);
  }
  refuse_argument(parameter.name,
                  "is a scalar of type " + std::string(to_string(parameter.type)) + ", a buffer was given");
}

}  // namespace

Arguments& Arguments::set(std::string_view name, std::variant<cuda::DevicePtr, double, std::int64_t> value) {
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

std::vector<ParameterBytes> pack_parameters(const Launch& launch, const Arguments& arguments) {
  std::vector<ParameterBytes> packed;
  packed.reserve(launch.parameters.size());
  for (const Parameter& parameter : launch.parameters) {
    switch (parameter.source) {
      case ParameterSource::Buffer:
        packed.push_back(pack_buffer(parameter, arguments));
        break;
      case ParameterSource::Value:
        packed.push_back(pack_scalar(parameter, parameter.value));
        break;
      case ParameterSource::Caller:
        packed.push_back(pack_caller_scalar(parameter, arguments));
        break;
    }
  }
  return packed;
}

void refuse_unknown(const PlanTemplate& kernel, const Arguments& arguments) {
  std::vector<std::string> known;
  for (const LaunchTemplate& launch : kernel.launches) {
    for (const ParameterTemplate& parameter : launch.parameters) {
      if (parameter.source != ParameterSource::Value &&
          std::ranges::find(known, parameter.name) == known.end()) {
        known.push_back(parameter.name);
      }
    }
  }
  for (const Arguments::Entry& entry : arguments.entries()) {
    if (std::ranges::find(known, entry.name) == known.end()) {
      refuse_argument(entry.name, "the kernel takes no such argument" + suggestion(entry.name, known));
    }
  }
}

}  // namespace cubind
