// Compares the arguments of a spec's launches with the parameters of the compiled entries, as far as mangled
// names tell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The parameters' types of a C++ function, as the demangler spells them: "__nv_bfloat16 const*", "long".
/// Absent for a symbol without types: extern "C".
std::optional<std::vector<std::string>> parameter_types(const std::string& symbol);

struct ArgumentFault {
  std::string pointer;  // "/launches/0/arguments/3"
  std::string cause;
  bool operator==(const ArgumentFault&) const = default;
};

/// Compares number, pointer or value, and element type. Unsigned integers of the element's size and void fit
/// any element. Types that cubind does not know and scratch buffers are not compared. `symbols`: the lowered
/// names of the spec's launches, in their order.
std::vector<ArgumentFault> argument_faults(const KernelSpec& spec, const Problem& problem,
                                           const std::vector<std::string>& symbols);

/// Like argument_faults(), for the launches of the spec's reference: "/reference/launches/0/arguments/3".
std::vector<ArgumentFault> reference_argument_faults(const KernelSpec& spec, const Problem& problem,
                                                     const std::vector<std::string>& symbols);

}  // namespace cubind
