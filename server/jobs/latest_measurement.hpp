// The latest measurement for a question, which decides how the question is tuned again.
#pragma once

#include "server/lookup/index.hpp"

namespace cubind {

/// The newest current record of the question's problem on its device class that a worker of this daemon
/// measured (or replayed), under any driver, toolchain and flush method; null if there is none.
RecordPtr latest_measurement(const RecordQuestion& question, const IndexSnapshot& index);

}  // namespace cubind
