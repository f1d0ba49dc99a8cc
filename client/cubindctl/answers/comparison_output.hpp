// Comparisons of a winner with libraries, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "client/cubindctl/terminal/json_output.hpp"
#include "plan/evidence.hpp"

namespace cubind::ctl {

/// "1.31 x (1.29 to 1.33), torch 2.13.0, reported".
std::string over_library(const LibraryComparison& comparison);

OutputJson json_of(const std::vector<LibraryComparison>& comparisons);

}  // namespace cubind::ctl
