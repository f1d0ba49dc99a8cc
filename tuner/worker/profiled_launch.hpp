// A variant's launches for a profiler: `cubind-worker launch`.
#pragma once

#include "schemas/worker.pb.h"
#include "tuner/worker/driver_context.hpp"

namespace cubind::worker {

/// Makes the inputs, launches the plan a few times, and then once between cuProfilerStart and
/// cuProfilerStop: a profiler that begins there (`ncu --profile-from-start off`) sees the plan's launches and
/// no others. Throws Error for a file that does not fit together, DriverError for what the device refuses.
void launch_profiled(DriverContext& context, const v1::LaunchFile& file);

}  // namespace cubind::worker
