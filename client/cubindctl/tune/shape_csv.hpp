// A shape list as CSV: RFC 4180 with a header that names the columns.
#pragma once

#include <string>
#include <string_view>

#include "client/cubindctl/tune/shape_list.hpp"

namespace cubind::ctl {

/// Columns: the names of dims, types and flags, `kernel` and `scenario`. Cells may be quoted. Spaces around
/// other cells, a byte order mark and empty lines are skipped. Throws Error(InvalidArgument) at "FILE line 4,
/// column 2 (D)".
ShapeList read_shape_csv(std::string_view text, const std::string& file);

}  // namespace cubind::ctl
