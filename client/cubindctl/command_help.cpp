#include "client/cubindctl/command_help.hpp"

#include <algorithm>
#include <sstream>

#include "base/text.hpp"

namespace cubind::ctl {
namespace {

void collect(const CommandPath& path, std::vector<CommandPath>& found) {
  found.push_back(path);
  for (const CommandHelp& command : path.back()->commands) {
    CommandPath longer = path;
    longer.push_back(&command);
    collect(longer, found);
  }
}

}  // namespace

std::vector<std::string> choices_of(const OptionHelp& option) {
  std::vector<std::string> choices;
  if (option.value.find('|') == std::string::npos) {
    return choices;
  }
  std::istringstream text(option.value);
  for (std::string choice; std::getline(text, choice, '|');) {
    choices.push_back(choice);
  }
  return choices;
}

std::vector<CommandPath> every_command(const CommandHelp& program) {
  std::vector<CommandPath> found;
  collect({&program}, found);
  return found;
}

std::string path_text(const CommandPath& path, const std::string& separator) {
  std::vector<std::string> names;
  for (const CommandHelp* command : path) {
    names.push_back(command->name);
  }
  return join(names, separator);
}

std::vector<OptionHelp> options_of(const CommandPath& path) {
  std::vector<OptionHelp> options;
  for (auto command = path.rbegin(); command != path.rend(); ++command) {
    for (const OptionHelp& option : (*command)->options) {
      if (std::ranges::count(options, option.names, &OptionHelp::names) == 0) {  // --help is of every command
        options.push_back(option);
      }
    }
  }
  return options;
}

}  // namespace cubind::ctl
