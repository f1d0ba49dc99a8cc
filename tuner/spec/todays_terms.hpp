// A stored row in terms of today's kernel spec: its configuration, and the key that its trial would have. If
// that key differs from the stored one, the source has changed since.
#pragma once

#include <optional>
#include <string>

#include "tuner/spec/keys.hpp"

namespace cubind {

/// Absent if the spec no longer has such a configuration. A tunable that the row does not know takes the
/// value of the first default, so that a new tunable orphans no table. A tunable that the spec does not know
/// is dropped.
std::optional<Configuration> in_todays_terms(const KernelSpec& spec, const Configuration& recorded);

/// The parts of a trial's key other than the spec and the configuration.
struct TrialConditions {
  Problem problem;  // canonical
  Digest device_class;
  DeviceConstants device;
  Policy policy;
  std::string driver;  // version: its branch counts
  std::string architecture;
  ToolchainIdentity toolchain;
};

/// Absent if the configuration is not valid for the problem or launches nothing. Throws
/// Error(InvalidArgument) where an expression fails.
std::optional<Digest> trial_key_under(const KernelSpec& spec, const Configuration& configuration,
                                      const TrialConditions& conditions);

}  // namespace cubind
