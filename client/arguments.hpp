// The arguments of a kernel as a caller gives them, checked when they are packed.
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
#include "tuner/plan/launch_plan.hpp"

namespace cubind {

/// What a caller passes for one argument; absent where nothing is.
using ArgumentValue = std::variant<std::monostate, cuda::DevicePtr, double, std::int64_t>;

/// Arguments by the names of the kernel spec. The launch plan computes dims and strides: do not pass them.
class Arguments {
 public:
  struct Entry {
    std::string name;
    ArgumentValue value;
  };

  /// Device memory of at least the parameter's extent; scratch buffers too. A name given again replaces the
  /// value.
  Arguments& buffer(std::string_view name, cuda::DevicePtr pointer) { return set(name, pointer); }
  Arguments& buffer(std::string_view name, const void* pointer) {
    return set(name, static_cast<cuda::DevicePtr>(reinterpret_cast<std::uintptr_t>(pointer)));
  }
  /// Converted to the parameter's type.
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

/// The value as the driver takes it; null for a buffer without elements that is not given. Throws
/// Error(InvalidArgument) at the argument's name if it is missing, of the wrong kind, below its alignment, or
/// null although the parameter has an extent. Allocates nothing else.
ParameterBytes pack_argument(const Parameter& parameter, const ArgumentValue& value);

/// The arguments in the order of `parameters`, absent where none was given. Throws Error(InvalidArgument) for
/// one of another name; the message suggests the nearest.
std::vector<ArgumentValue> number_arguments(std::span<const Parameter> parameters,
                                            const Arguments& arguments);

}  // namespace cubind
