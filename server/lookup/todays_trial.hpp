// The trial key of a record's problem under the current spec.
#pragma once

#include <optional>

#include "server/store/rows.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The key that the configuration's trial would have now for the record's problem, architecture, toolchain
/// and driver; absent if the configuration is invalid for that problem or launches nothing.
std::optional<Digest> todays_trial_key(const KernelSpec& spec, const RecordRow& record,
                                       const Configuration& configuration, const DeviceFacts& facts);

}  // namespace cubind
