// The trial keys of a record's problem under today's spec.
#pragma once

#include <cstddef>
#include <optional>
#include <set>

#include "server/store/rows.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The key that the configuration's trial would have today on the record's problem, for its architecture,
/// toolchain and driver; absent if the configuration is not valid for that problem or launches nothing.
std::optional<Digest> todays_trial_key(const KernelSpec& spec, const RecordRow& record,
                                       const Configuration& configuration, const DeviceFacts& facts);

/// The number of trials that today's spec has for the record's problem and `tried` lacks: the search space
/// has grown since. Enumerates the space.
std::size_t count_untried(const KernelSpec& spec, const RecordRow& record, const DeviceFacts& facts,
                          const std::set<Digest>& tried);

}  // namespace cubind
