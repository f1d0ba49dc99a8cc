// Whether two trials run the same machine code by the same launches. Their keys may differ: a macro that
// nothing reads and a template parameter that is part of a name alone change the key and not the code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "plan/facts/facts.hpp"
#include "plan/launch_plan.hpp"

namespace cubind {

/// A plan and what its entries take, without the names of entries and variables.
struct NamelessLaunch {
  LaunchPlan plan;
  std::vector<EntryResources> resources;
  bool operator==(const NamelessLaunch&) const = default;
};
NamelessLaunch without_names(LaunchPlan plan, std::vector<EntryResources> resources);

/// Digest of what a driver loads of a cubin: code, constants, variables, attributes and the symbol table
/// without its names, and which of the symbols `entries` are, in their order. Names, debug information and
/// notes of the compiler are left out. Sections in another order give another digest. Absent: the bytes are
/// not a cubin's, or lack one of the entries.
std::optional<Digest> loaded_code(std::string_view cubin, const std::vector<std::string>& entries);

}  // namespace cubind
