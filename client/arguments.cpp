#include "client/arguments.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

[[noreturn]] void refuse_argument(const std::string& name, const std::string& cause) {
  throw Error(ErrorCode::InvalidArgument, "argument " + name, cause);
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
        return pack_pointer(0);
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
  return pack_pointer(*pointer);
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
