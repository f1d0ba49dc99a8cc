// The arguments of cubindctl.
#pragma once

#include <variant>

#include "client/cubindctl/command_help.hpp"
#include "client/cubindctl/exit_code.hpp"
#include "client/cubindctl/options.hpp"

namespace cubind::ctl {

/// What to do; or, where help or the version was asked for or the usage is wrong, the exit code after it has
/// been printed.
std::variant<CommandLine, ExitCode> parse_command_line(int argc, const char* const* argv);

/// What the parser knows of every command, as completion and manual pages need it.
CommandHelp command_help();

}  // namespace cubind::ctl
