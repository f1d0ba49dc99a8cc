#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/interrupt.hpp"

namespace cubind {

using Json = nlohmann::json;  // members sorted by name: canonical output
using OrderedJson =
    nlohmann::ordered_json;  // members in declared order: tunables, dims and arguments are ordered

/// What parse_json_strict() takes. `interrupt` is asked now and then.
struct JsonLimits {
  std::size_t max_bytes = 64u << 20;
  std::size_t max_depth = 64;      // of nested arrays and objects
  std::size_t max_members = 1000;  // of one object: a reader looks for each member in turn
  Interrupt interrupt = {};
};

/// Parses one JSON document that makes up the whole of `text`. Refuses faults that JSON parsers usually
/// accept: a repeated key (the last one would silently win), nesting below max_depth, objects above
/// max_members, and input above max_bytes. Comments are not JSON. `file_name` is only used in messages.
/// Throws Error(InvalidArgument), or ResourceExhausted for the size:
///   rmsnorm.json /problem/dims/N: duplicate key (line 3, column 22)
///   rmsnorm.json line 4, column 9: syntax error ...
OrderedJson parse_json_strict(std::string_view text, std::string_view file_name,
                              const JsonLimits& limits = {});

}  // namespace cubind
