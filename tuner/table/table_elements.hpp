// One device, record or trial of a table, which satisfies the schema. Each function throws
// Error(InvalidArgument) at the place in the file for what a schema cannot say.
#pragma once

#include "base/json_node.hpp"
#include "tuner/table/table.hpp"

namespace cubind {

Digest read_digest(const JsonNode& node);
TableDevice read_device(const JsonNode& node);
TableRecord read_record(const JsonNode& node);
TableTrial read_trial(const JsonNode& node);

}  // namespace cubind
