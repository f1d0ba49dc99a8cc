// The trial key that a configuration has under a kernel spec: told from a stored one, whether the source has
// changed since.
#pragma once

#include <optional>
#include <string>

#include "tuner/spec/keys.hpp"

namespace cubind {

/// What a trial's key depends on beside the spec and the configuration.
struct TrialConditions {
  Problem problem;  // canonical
  Digest device_class;
  DeviceConstants device;
  Policy policy;
  std::string driver;  // version: its branch counts
  std::string architecture;
  ToolchainIdentity toolchain;
};

/// Absent where the configuration is not valid for the problem or launches nothing. Throws
/// Error(InvalidArgument) where an expression fails.
std::optional<Digest> trial_key_under(const KernelSpec& spec, const Configuration& configuration,
                                      const TrialConditions& conditions);

}  // namespace cubind
