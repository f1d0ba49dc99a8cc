// Where in a bucket a configuration is not valid, as an expression of the dims.
#pragma once

#include <optional>
#include <string>

#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// True for those problems of the problem's bucket for which constraints that read its dims refuse the
/// configuration, among them the problem itself. Absent: none of them refuses it for the problem.
std::optional<std::string> invalid_where(const KernelSpec& spec, const Problem& problem,
                                         const Configuration& configuration, const DeviceConstants& device);

}  // namespace cubind
