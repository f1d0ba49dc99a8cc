// Enumeration of a kernel's configurations for one problem on one device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/interrupt.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

inline constexpr std::uint64_t kBetweenInterrupts = 4096;

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
/// `interrupt` is asked after every kBetweenInterrupts steps of the walk.
SpaceSize count_valid(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
                      const Interrupt& interrupt = {});

/// Why a configuration is not valid for the problem; absent if it is.
std::optional<std::string> violation(const KernelSpec& spec, const Problem& problem,
                                     const Configuration& configuration, const DeviceConstants& device);

/// The first valid one of the spec's defaults, else the first valid configuration; absent if there is none.
/// `interrupt` as for count_valid().
std::optional<Configuration> default_configuration(const KernelSpec& spec, const Problem& problem,
                                                   const DeviceConstants& device,
                                                   const Interrupt& interrupt = {});

}  // namespace cubind
