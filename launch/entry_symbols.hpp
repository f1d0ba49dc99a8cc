#pragma once

#include <string>
#include <vector>

#include "tuner/plan/launch_plan.hpp"

namespace cubind {

/// The symbols of the kernels that the launches start, each once, in launch order: by these a module's
/// functions are numbered.
std::vector<std::string> entry_symbols(const PlanTemplate& plan);
std::vector<std::string> entry_symbols(const LaunchPlan& plan);

}  // namespace cubind
