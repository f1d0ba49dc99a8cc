// Where the text of a table goes that a command has made.
#pragma once

#include <cstdint>
#include <string>

#include "client/cubindctl/options.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::ctl {

/// Writes the table to the file and says so: in words, which `summary` ends (": 3 records"), or as JSON,
/// which has `counts` besides the file and its size. Without a file the table itself goes to standard output.
void output_table(const std::string& file, const std::string& table, const std::string& summary,
                  const OutputJson& counts, const CommonOptions& common);

/// For the winners alone.
v1::ExportTableRequest export_request(const RecordChoice& records);

/// "left out 66 records that came with cubind: --shipped includes them"; empty for none.
std::string shipped_left_out(std::uint32_t records);

/// On standard error: which rows an export lacks, and what includes them.
void tell_what_is_left_out(const v1::TableChunk& table);

}  // namespace cubind::ctl
