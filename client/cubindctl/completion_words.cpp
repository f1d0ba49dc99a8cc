#include "client/cubindctl/completion_words.hpp"

#include <algorithm>

namespace cubind::ctl {

std::vector<OptionHelp> options_of(const CommandPath& path) {
  std::vector<OptionHelp> options;
  for (auto command = path.rbegin(); command != path.rend(); ++command) {
    for (const OptionHelp& option : (*command)->options) {
      const auto same = [&](const OptionHelp& other) { return other.names == option.names; };
      if (std::ranges::none_of(options, same)) {  // every command has a help of its own
        options.push_back(option);
      }
    }
  }
  return options;
}

std::vector<std::string> command_names(const CommandHelp& command) {
  std::vector<std::string> names;
  for (const CommandHelp& below : command.commands) {
    names.push_back(below.name);
  }
  return names;
}

std::vector<std::string> known_values(const OptionHelp& option, const CommandHelp& program) {
  return option.value == "COMMAND" ? command_names(program) : choices_of(option);
}

std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace cubind::ctl
