// Everything known of the command line, without the parser: the source of completion and manual pages.
#pragma once

#include <string>
#include <vector>

namespace cubind::ctl {

struct OptionHelp {
  std::vector<std::string> names;  // "-o", "--output"; the name of a positional
  /// The kind of the value: "FILE", "FOLDER", or its choices: "auto|never". Empty: a flag.
  std::string value;
  std::string text;
  bool required = false;
  bool repeatable = false;
};

struct CommandHelp {
  std::string name;
  std::string text;
  std::vector<OptionHelp> options;
  std::vector<OptionHelp> positionals;  // in order
  std::vector<CommandHelp> commands;
  bool needs_command = false;  // does nothing by itself
};

/// {"serve", "wait", "fail"} of "serve|wait|fail"; empty for a value without choices.
std::vector<std::string> choices_of(const OptionHelp& option);

/// A command with the commands that lead to it, the program first.
using CommandPath = std::vector<const CommandHelp*>;

/// Every command, also one with commands below it, in the order of the parser; the program itself first.
std::vector<CommandPath> every_command(const CommandHelp& program);

/// "cubindctl kernels check", with `separator` in place of the spaces.
std::string path_text(const CommandPath& path, const std::string& separator = " ");

/// A command's own options, then those of the commands above it, which it takes too; each once.
std::vector<OptionHelp> options_of(const CommandPath& path);

}  // namespace cubind::ctl
