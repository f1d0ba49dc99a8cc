// Comparisons of a winner with the default and with libraries, as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/cubindctl/terminal/json_output.hpp"
#include "plan/facts/facts.hpp"

namespace cubind::ctl {

/// Time of the default over time of the winner; absent: the default was not measured with it.
std::optional<double> over_default(const Timing& timing);

/// "1.31 x (1.29 to 1.33), torch 2.13.0, reported".
std::string over_library(const LibraryComparison& comparison);

OutputJson json_of(const std::vector<LibraryComparison>& comparisons);

}  // namespace cubind::ctl
