#pragma once

#include <string>
#include <vector>

#include "plan/launch_plan.hpp"

namespace cubind {

/// The symbols of the launches' kernels, each once, in launch order. They number a module's functions.
std::vector<std::string> entry_symbols(const PlanTemplate& plan);
std::vector<std::string> entry_symbols(const LaunchPlan& plan);

}  // namespace cubind
