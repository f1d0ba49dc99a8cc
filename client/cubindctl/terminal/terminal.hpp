// The terminal that standard output is, if it is one.
#pragma once

#include <cstddef>

namespace cubind::ctl {

/// How many columns standard output has now; 0: it is no terminal.
std::size_t output_columns();

/// Whether standard output is a terminal that takes a line back.
bool can_redraw();

}  // namespace cubind::ctl
