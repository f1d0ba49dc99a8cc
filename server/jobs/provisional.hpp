// Records that were measured beside a foreign process stand in until the GPU is idle.
#pragma once

#include "server/lookup/index.hpp"

namespace cubind {

/// The latest measurement of the question's problem on its device class, if it is provisional; null: it was
/// taken alone, or there is none.
RecordPtr provisional_record(const RecordQuestion& question, const IndexSnapshot& index);

}  // namespace cubind
