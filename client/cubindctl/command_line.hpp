// The arguments of cubindctl.
#pragma once

#include <variant>

#include "client/cubindctl/command_help.hpp"
#include "client/cubindctl/exit_code.hpp"
#include "client/cubindctl/options.hpp"

namespace cubind::ctl {

/// The command to run. Or, if it has printed help, the version or a usage error, the exit code.
std::variant<CommandLine, ExitCode> parse_command_line(int argc, const char* const* argv);

/// The parser's knowledge of every command, for completion and manual pages.
CommandHelp command_help();

}  // namespace cubind::ctl
