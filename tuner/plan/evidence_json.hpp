// Evidence as JSON, by the lists of its members' names: tables are written and read by them, the store keeps
// resources by them, and cubindctl prints by them.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>

#include "base/json.hpp"
#include "base/json_node.hpp"
#include "tuner/plan/evidence.hpp"

namespace cubind {

template <typename Fields, typename Visit>
void for_each_field(const Fields& fields, const Visit& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, fields);
}

/// Adds the members to an object, in the list's order.
template <typename Owner, typename Fields>
void add_fields(OrderedJson& json, const Owner& owner, const Fields& fields) {
  for_each_field(fields, [&](const auto& field) {
    const auto& value = owner.*field.member;
    if (field.printed == Printed::Always || value != std::remove_cvref_t<decltype(value)>{}) {
      json[std::string(field.name)] = value;
    }
  });
}

inline OrderedJson to_json(const EntryResources& entry) {
  OrderedJson json = OrderedJson::object();
  add_fields(json, entry, kResourceFields);
  return json;
}

inline OrderedJson to_json(const LibraryComparison& comparison) {
  OrderedJson json = OrderedJson::object();
  add_fields(json, comparison, kComparisonFields);
  return json;
}

/// Reads numbers and flags that may be absent, as where a schema has said which may. Throws
/// Error(InvalidArgument) at a value of another type or range.
template <typename Owner, typename Fields>
void read_fields(const JsonNode& node, Owner& owner, const Fields& fields) {
  for_each_field(fields, [&](const auto& field) {
    auto& value = owner.*field.member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::same_as<Value, bool>) {
      value = node.bool_or(field.name, false);
    } else if constexpr (std::same_as<Value, double>) {
      value = node.number_or(field.name, 0);
    } else if constexpr (std::same_as<Value, std::uint32_t>) {
      value = static_cast<Value>(node.contains(field.name) ? node.at(field.name).as_int64(0, UINT32_MAX) : 0);
    } else {
      static_assert(std::same_as<Value, std::string>);
      value = node.string_or(field.name, "");
    }
  });
}

}  // namespace cubind
