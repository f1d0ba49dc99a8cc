// Problems and named values as the JSON that tables and the store keep.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "plan/problem.hpp"

namespace cubind {

/// {"N": 4096, "D": 4096}, in declared order.
nlohmann::ordered_json to_json(const std::vector<NamedValue>& values);
/// {"dims": {...}, "types": {"T": "bf16"}, "flags": {...}, "scenario": ""}.
nlohmann::ordered_json to_json(const Problem& problem);

}  // namespace cubind
