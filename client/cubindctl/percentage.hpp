// A percentage as people write it.
#pragma once

#include <string>

namespace cubind::ctl {

/// 2 of "2%", "2 %" and "2". Throws Error(InvalidArgument) that names the option.
double parse_percentage(const std::string& text, const std::string& option);

}  // namespace cubind::ctl
