// Completion of the command line for shells, made from what the parser knows.
#pragma once

#include <string>

#include "client/cubindctl/command_help.hpp"

namespace cubind::ctl {

/// The script for "bash", "zsh" or "fish". It needs nothing but the shell, asks no daemon and starts nothing.
/// Throws Error(InvalidArgument) for another shell.
std::string completion_script(const CommandHelp& program, const std::string& shell);

}  // namespace cubind::ctl
