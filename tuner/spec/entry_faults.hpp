// Compares what a spec plans to launch with the entries that were compiled for it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/spec/entry_parameters.hpp"

namespace cubind {

/// What is known of a compiled entry or variable.
struct CompiledEntry {
  std::optional<std::vector<EntryParameter>> parameters = {};  // absent: unknown
  CubinEntry limits = {};                                      // without any where the cubin does not tell
  std::uint64_t variable_bytes = 0;                            // 0: no variable, or the cubin does not tell
};

/// By name expression: as launches name their entry, or variable_expression().
using CompiledEntries = std::map<std::string, CompiledEntry>;

/// `symbols`: the lowered names of `entries`, in their order. `cubin` may be empty: then symbols alone tell.
CompiledEntries compiled_entries(std::string_view cubin, const std::vector<std::string>& entries,
                                 const std::vector<std::string>& symbols);

struct EntryFault {
  std::string pointer;  // "/launches/0/arguments/3"
  std::string cause;
  /// This configuration exceeds what the entry allows at launch; another one may not. Otherwise the spec
  /// passes arguments that the entry does not take.
  bool is_limit = false;
  bool operator==(const EntryFault&) const = default;
};

/// Compares the launches' arguments with the entries' parameters (fits()), the plan's blocks and grids with
/// the entries' limits, and the content of variables with their sizes. `plan`: of `launches`; if it is empty,
/// only arguments are compared. An entry that is not among `entries` is not compared.
std::vector<EntryFault> entry_faults(const PlanTemplate& launches, const LaunchPlan& plan,
                                     const CompiledEntries& entries);

}  // namespace cubind
