// Members of the evidence by their names in JSON, one list a type: tables are written and read by them, the store
// keeps resources by them, and cubindctl prints by them.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "base/json.hpp"
#include "base/json_node.hpp"
#include "tuner/plan/evidence.hpp"

namespace cubind {

/// IfSet: a false or zero member is left out.
enum class Printed : std::uint8_t { Always, IfSet };

template <typename Owner, typename Value>
struct JsonField {
  std::string_view name;
  Value Owner::*member;
  Printed printed = Printed::Always;
};
template <typename Owner, typename Value>
JsonField(std::string_view, Value Owner::*, Printed = Printed::Always) -> JsonField<Owner, Value>;

/// The part of a timing that prints alike everywhere. A member that is newer than the tables which people keep is
/// printed IfSet: theirs then print as they did.
inline constexpr std::tuple kTimingFields{
    JsonField{"time_us", &Timing::median_us},    JsonField{"time_low_us", &Timing::low_us},
    JsonField{"time_high_us", &Timing::high_us}, JsonField{"samples", &Timing::samples},
    JsonField{"sm_mhz", &Timing::sm_mhz},        JsonField{"power_limit_mw", &Timing::power_limit_mw},
    JsonField{"throttled", &Timing::throttled},  JsonField{"contended", &Timing::contended},
};

/// A block's conditions as a table has them.
inline constexpr std::tuple kConditionFields{
    JsonField{"sm_mhz", &BlockConditions::sm_mhz},
    JsonField{"throttled", &BlockConditions::throttled, Printed::IfSet},
    JsonField{"contended", &BlockConditions::contended, Printed::IfSet},
};

inline constexpr std::tuple kResourceFields{
    JsonField{"entry_symbol", &EntryResources::entry_symbol},
    JsonField{"registers", &EntryResources::registers},
    JsonField{"static_shared_bytes", &EntryResources::static_shared_bytes},
    JsonField{"local_bytes", &EntryResources::local_bytes},
    JsonField{"spill_store_bytes", &EntryResources::spill_store_bytes},
    JsonField{"spill_load_bytes", &EntryResources::spill_load_bytes},
    JsonField{"tensor_cores", &EntryResources::tensor_cores},
};

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
