// A plan with what only the compile of its entries knows. Agents launch such plans, the daemon serves them.
#pragma once

#include <string>
#include <vector>

#include "plan/facts/facts.hpp"
#include "plan/launch_plan.hpp"

namespace cubind {

/// The plan with the lowered names of `expressions`, which `symbols` has in their order, and with the dynamic
/// shared memory that the compiler decided for the entries. An entry or variable that is not among them gets
/// no name. A template also gets the static shared memory of its entries.
PlanTemplate as_compiled(PlanTemplate plan, const std::vector<std::string>& expressions,
                         const std::vector<std::string>& symbols,
                         const std::vector<EntryResources>& resources);
LaunchPlan as_compiled(LaunchPlan plan, const std::vector<std::string>& expressions,
                       const std::vector<std::string>& symbols, const std::vector<EntryResources>& resources);

}  // namespace cubind
