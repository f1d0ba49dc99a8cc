// The arguments of cubindctl.
#pragma once

#include <variant>

#include "client/cubindctl/options.hpp"
#include "client/cubindctl/terminal/exit_code.hpp"

namespace cubind::ctl {

/// The command to run. Or, if it has printed help, the version, completions or a usage error, the exit code.
std::variant<CommandLine, ExitCode> parse_command_line(int argc, const char* const* argv);

}  // namespace cubind::ctl
