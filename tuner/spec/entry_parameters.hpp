// The parameters of a compiled entry: their types from the symbol, their sizes from the cubin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/launch_plan.hpp"
#include "tuner/spec/cubin_entries.hpp"

namespace cubind {

/// The parameters' types of a C++ function, as the demangler spells them: "__nv_bfloat16 const*", "long".
/// Absent for a symbol without types: extern "C".
std::optional<std::vector<std::string>> parameter_types(const std::string& symbol);

/// A type that arguments of a spec can have. Static.
struct ElementType {
  std::string_view name;
  std::size_t bytes = 0;
  bool is_integer = false;
  bool is_unsigned = false;
};

struct EntryParameter {
  std::string type;                      // empty: the symbol does not tell
  std::uint32_t bytes = 0;               // 0: the cubin does not tell
  bool is_pointer = false;               // or a reference
  const ElementType* element = nullptr;  // of the value, or of the first pointer's target; null: another type
};

/// Absent: neither tells how many there are. `entry` may be null.
std::optional<std::vector<EntryParameter>> entry_parameters(const std::string& symbol,
                                                            const CubinEntry* entry);

/// Compares size, pointer or value, and element type. Unsigned integers of the element's size and void fit
/// any element. Of a type that cubind does not know, and of all parameters of an extern "C" entry, only the
/// size is compared: there, a pointer or a reference instead of a scalar of 8 bytes is not seen. What a
/// scratch buffer points to is not compared.
bool fits(const EntryParameter& parameter, const ParameterTemplate& argument);

/// "float const*", "uint3 of 12 bytes", "of 12 bytes"
std::string to_string(const EntryParameter& parameter);

}  // namespace cubind
