// The trial key of a record's problem under today's spec.
#pragma once

#include <optional>

#include "server/store/rows.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The key that the configuration's trial would have today on the record's problem, for its architecture,
/// toolchain and driver; absent if the configuration is not valid for that problem or launches nothing.
std::optional<Digest> todays_trial_key(const KernelSpec& spec, const RecordRow& record,
                                       const Configuration& configuration, const DeviceFacts& facts);

}  // namespace cubind
