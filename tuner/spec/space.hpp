// A kernel's configurations for one problem on one device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/interrupt.hpp"
#include "tuner/space/configuration_space.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The valid configurations: those for which every constraint holds and whose launch plan keeps the launch
/// limits. They are numbered and drawn from without being listed. Immutable: const methods may be called from
/// several threads at once.
class KernelSpace {
 public:
  /// Throws Error(InvalidArgument) where an expression fails, naming the spec's pointer, and
  /// Error(ResourceExhausted) as ConfigurationSpace does. `interrupt` is asked during construction.
  KernelSpace(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
              const Interrupt& interrupt = {});

  const ConfigurationSpace& numbers() const { return space_; }
  Configuration configuration(std::uint64_t number) const;
  /// Absent where the configuration is not valid, or not one of the spec's.
  std::optional<std::uint64_t> number(const Configuration& configuration) const;

 private:
  const ConfigurationSpace space_;
};

struct SpaceSize {
  std::uint64_t total = 0;  // product of the tunables' values; 2^64 - 1 where it is larger
  std::uint64_t valid = 0;
  bool exact = true;  // not: constraints tie too many tunables to be counted, and `valid` is an upper bound
};

/// Throws as KernelSpace does.
SpaceSize count_valid(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
                      const Interrupt& interrupt = {});

/// Why a configuration is not valid for the problem; absent if it is.
std::optional<std::string> violation(const KernelSpec& spec, const Problem& problem,
                                     const Configuration& configuration, const DeviceConstants& device);

/// The first valid one of the spec's defaults, else the first valid configuration in canonical order
/// (declared order of the tunables and their values, last tunable fastest); absent if there is none. Looks
/// for the latter at a bounded number of configurations and then throws Error(ResourceExhausted).
std::optional<Configuration> default_configuration(const KernelSpec& spec, const Problem& problem,
                                                   const DeviceConstants& device,
                                                   const Interrupt& interrupt = {});

}  // namespace cubind
