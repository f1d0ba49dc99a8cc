// One device, record or trial of a table. Each function throws Error(InvalidArgument) at the location in the
// file that breaks the format (docs/tables.md).
#pragma once

#include "base/json_node.hpp"
#include "tuner/table/table.hpp"

namespace cubind {

Digest read_digest(const JsonNode& node);
TableDevice read_device(const JsonNode& node);
TableRecord read_record(const JsonNode& node);
TableTrial read_trial(const JsonNode& node);

}  // namespace cubind
