// The arguments of a kernel, and their conversion to the driver's parameter block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "cuda_api/driver_types.hpp"
#include "tuner/plan/launch_plan.hpp"

namespace cubind {

/// Arguments by the names of the kernel spec. The launch plan computes dims and strides: do not pass them.
class Arguments {
 public:
  struct Entry {
    std::string name;
    std::variant<cuda::DevicePtr, double, std::int64_t> value;
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
  Arguments& set(std::string_view name, std::variant<cuda::DevicePtr, double, std::int64_t> value);

  std::vector<Entry> entries_;
};

/// A scalar parameter's bytes, as the driver copies them.
using ParameterBytes = std::array<std::byte, 8>;

/// Rounds to nearest even. Throws Error(InvalidArgument) if an integer parameter cannot hold the value.
ParameterBytes pack_scalar(const Parameter& parameter, double value);
ParameterBytes pack_scalar(const Parameter& parameter, std::int64_t value);

/// The parameters of one launch, in order. Throws Error(InvalidArgument) at the parameter's name if an
/// argument is missing, is of the wrong kind, null, or below its alignment.
std::vector<ParameterBytes> pack_parameters(const Launch& launch, const Arguments& arguments);

/// Throws Error(InvalidArgument) for an argument that no launch of the kernel takes; launches that a problem
/// leaves out count too. The message lists the kernel's arguments.
void refuse_unknown(const PlanTemplate& kernel, const Arguments& arguments);

}  // namespace cubind
