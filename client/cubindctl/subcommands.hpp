// The commands with their options: what each is called, takes and says of itself.
#pragma once

#include "client/cubindctl/options.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace cubind::ctl {

/// Adds every command to the parser. The one that is given puts its options into `line`, which outlives the
/// parser.
void add_subcommands(CLI::App& app, CommandLine& line);

}  // namespace cubind::ctl
