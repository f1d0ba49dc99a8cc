// The arguments that a caller passes to a kernel, checked when they are packed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "cuda_api/driver_types.hpp"
#include "launch/pack.hpp"
#include "plan/launch_plan.hpp"

namespace cubind {

/// The caller's value for one argument; monostate if none was given.
using ArgumentValue = std::variant<std::monostate, cuda::DevicePtr, double, std::int64_t>;

/// Arguments by the names of the kernel spec. The launch plan computes dims and strides: do not pass them.
class Arguments {
 public:
  struct Entry {
    std::string name;
    ArgumentValue value;
  };

  /// Device memory of at least the parameter's extent, also for scratch buffers. Giving a name again replaces
  /// its value.
  Arguments& buffer(std::string_view name, cuda::DevicePtr pointer) { return set(name, pointer); }
  Arguments& buffer(std::string_view name, const void* pointer) {
    return set(name, static_cast<cuda::DevicePtr>(reinterpret_cast<std::uintptr_t>(pointer)));
  }
  /// The value is converted to the parameter's type.
  template <typename Number>
    requires std::is_arithmetic_v<Number>
  Arguments& scalar(std::string_view name, Number value) {
    if constexpr (std::is_floating_point_v<Number>) {
      return set(name, static_cast<double>(value));
    } else {
      return set(name, static_cast<std::int64_t>(value));
    }
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  Arguments& set(std::string_view name, ArgumentValue value);

  std::vector<Entry> entries_;
};

/// The value in the driver's form; a null pointer for a missing buffer without elements. Throws
/// Error(InvalidArgument) at the argument's name if the value is missing, of the wrong kind, misaligned, or
/// null although the parameter has an extent. Allocates only for the error.
ParameterBytes pack_argument(const Parameter& parameter, const ArgumentValue& value);

/// The arguments in the order of `parameters`; monostate where none was given. Throws Error(InvalidArgument)
/// for an unknown name; the message suggests the nearest one.
std::vector<ArgumentValue> number_arguments(std::span<const Parameter> parameters,
                                            const Arguments& arguments);

}  // namespace cubind
