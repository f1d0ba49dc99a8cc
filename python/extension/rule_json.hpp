// A rule as the JSON that cubind/answer.py makes of a reply, and launch plans as JSON for Python.
#pragma once

#include <string>
#include <string_view>

#include "client/answer_trust.hpp"
#include "client/rule.hpp"

namespace cubind::python {

/// {"kernel", "asked": PROBLEM, "configuration": PAIRS, "intervals": [[dim, lower, upper]], "own_records":
/// [PROBLEM], "constraints": [text], "conditions": [text], "launches": [LAUNCH], "device_constants": PAIRS,
/// "static_shared_bytes"} with PROBLEM
/// {"dims": PAIRS, "types": PAIRS, "flags": PAIRS, "scenario"} and PAIRS [[name, value]]; LAUNCH has the
/// fields of v1.LaunchTemplate. Throws Error(InvalidArgument) for anything else.
RuleParts rule_from_json(std::string_view text);

/// {"namespace", "warm_l2", "graph_launch", "numerics", "fingerprint", "signature", "match",
/// "measured_problem": PROBLEM, "device_class", "measured_device_class", "artifact", "toolchain",
/// "architecture", "cubin", "cubin_bytes", "evidence", "provisional"}, bytes in hexadecimal. Throws
/// Error(InvalidArgument) for anything else.
ClaimedAnswer claims_from_json(std::string_view text);

/// [{"entry", "entry_symbol", "grid": [x, y, z], "block": [x, y, z], "shared_bytes", "parameters": [{"name",
/// "source": "buffer" | "value" | "caller" | "symbol", "type", "role", "extent_bytes", "align_bytes",
/// "value", "shape"}]}]; of source "symbol" also "variable" and "symbol".
std::string to_json(const LaunchPlan& plan);

/// "buffer", "value", "caller", "symbol".
const char* name_of(ParameterSource source);
/// "none", "in", "out", "inout", "zero", "scratch".
const char* name_of(Role role);

}  // namespace cubind::python
