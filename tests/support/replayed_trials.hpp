// Trials of any kernel, and the table in which a replay device finds them.
#pragma once

#include <string>
#include <vector>

#include "tuner/table/table.hpp"

namespace cubind::test {

/// Measured on the device of example_facts(), and correct.
TableTrial replayed_trial(const std::string& kernel, const Problem& problem,
                          const Configuration& configuration, double time_us);
std::string replayed_table(std::vector<TableTrial> trials);

}  // namespace cubind::test
