// What the completions of the shells have in common.
#pragma once

#include <string>
#include <vector>

#include "client/cubindctl/command_help.hpp"

namespace cubind::ctl {

/// A command's own options and those of the commands above it, which are taken in any place; each name once.
std::vector<OptionHelp> options_of(const CommandPath& path);

/// Of the commands below it.
std::vector<std::string> command_names(const CommandHelp& command);

/// What a value may be: its choices, the program's commands where a command is asked for; empty where nobody
/// can know.
std::vector<std::string> known_values(const OptionHelp& option, const CommandHelp& program);

/// In single quotes, for bash and zsh.
std::string shell_quoted(const std::string& text);

std::string zsh_script(const CommandHelp& program);
std::string fish_script(const CommandHelp& program);

}  // namespace cubind::ctl
