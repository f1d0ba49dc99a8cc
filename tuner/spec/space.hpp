// Enumeration of a kernel's configurations for one problem on one device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

struct SpaceSize {
  std::uint64_t total = 0;  // product of the tunables' values
  std::uint64_t valid = 0;
};

/// Valid configurations in canonical order (the declared order of tunables and values, last tunable fastest).
/// A constraint is evaluated as soon as its variables are bound. A configuration is valid if every constraint
/// holds and its launch plan keeps the launch limits. Throws Error(ResourceExhausted) above `limit` valid
/// configurations, Error(InvalidArgument) where an expression fails, naming the spec's pointer.
std::vector<Configuration> enumerate_valid(const KernelSpec& spec, const Problem& problem,
                                           const DeviceConstants& device, std::uint64_t limit = 1'000'000);
SpaceSize count_valid(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device);

/// Why a configuration is not valid for the problem; absent if it is.
std::optional<std::string> violation(const KernelSpec& spec, const Problem& problem,
                                     const Configuration& configuration, const DeviceConstants& device);

/// The first of the spec's defaults that is valid, else the first valid configuration; absent where none is.
std::optional<Configuration> default_configuration(const KernelSpec& spec, const Problem& problem,
                                                   const DeviceConstants& device);

}  // namespace cubind
