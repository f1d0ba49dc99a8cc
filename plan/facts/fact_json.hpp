// Facts as JSON, by one walk over the fields of their messages (schemas/facts.proto).
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/json_node.hpp"
#include "plan/facts/facts.hpp"

namespace cubind {

/// Fields with a higher number are not printed.
inline constexpr int kLastPrinted = 15;

/// Adds the fields of these numbers. Problems, digests and enumerators print as everywhere; conditions add
/// their fields to the same object.
void add_fields(OrderedJson& json, const google::protobuf::Message& fact, int first = 1,
                int last = kLastPrinted);

inline OrderedJson to_json(const google::protobuf::Message& fact) {
  OrderedJson json = OrderedJson::object();
  add_fields(json, fact);
  return json;
}

/// The same of a device, with "compute_capability": "9.0".
void add_device_facts(OrderedJson& json, const v1::DeviceFacts& facts, int last = kLastPrinted);

/// Reads numbers, flags, texts and lists of numbers that are printed and may be absent. Throws
/// Error(InvalidArgument) at a value of another type, or outside of the range of fact_check.hpp. Returns the
/// names that it looked for.
std::vector<std::string> read_fields(const JsonNode& node, google::protobuf::Message& fact);

}  // namespace cubind
