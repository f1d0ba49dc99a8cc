// Manual pages of the command line, made from the parser's knowledge.
#pragma once

#include <string>

#include "client/cubindctl/command_help.hpp"

namespace cubind::ctl {

/// "cubindctl-kernels-check.1".
std::string man_page_file(const CommandPath& path);

/// The page in roff (man macros). It names the program's version and no date, so that it can be made again.
std::string man_page(const CommandPath& path);

}  // namespace cubind::ctl
