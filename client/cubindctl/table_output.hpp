// Where the text of a table goes that a command has made.
#pragma once

#include <string>

#include "client/cubindctl/json_output.hpp"
#include "client/cubindctl/options.hpp"

namespace cubind::ctl {

/// Writes the table to the file and says so: in words, which `summary` ends (": 3 records"), or as JSON,
/// which has `counts` besides the file and its size. Without a file the table itself goes to standard output.
void output_table(const std::string& file, const std::string& table, const std::string& summary,
                  const OutputJson& counts, const CommonOptions& common);

}  // namespace cubind::ctl
