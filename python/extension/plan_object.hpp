// Launch plans as Python sees them.
#pragma once

#include "plan/launch_plan.hpp"
#include "python/extension/python_object.hpp"

namespace cubind::python {

/// [{"entry", "entry_symbol", "grid": [x, y, z], "block": [x, y, z], "shared_bytes", "parameters": [{"name",
/// "source": "buffer" | "value" | "caller" | "symbol", "type", "role", "extent_bytes", "align_bytes",
/// "value", "shape"}]}]; of source "symbol" also "variable" and "symbol". A launch that has them: "cluster":
/// [x, y, z], and "attributes": {"cooperative", "programmatic_stream_serialization", "priority"}.
Object plan_object(const LaunchPlan& plan);

/// "buffer", "value", "caller", "symbol".
const char* name_of(ParameterSource source);
/// "none", "in", "out", "inout", "zero", "scratch".
const char* name_of(Role role);

}  // namespace cubind::python
