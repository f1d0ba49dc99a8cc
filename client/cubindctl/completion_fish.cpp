// The completion for fish: a line for each command, option and choice.
#include "base/text.hpp"
#include "client/cubindctl/completion_words.hpp"

namespace cubind::ctl {
namespace {

constexpr const char* kHead = R"(# Completion of cubindctl for fish, made by `cubindctl completion fish`.
function __cubindctl_at
    set -l at cubindctl
    set -l words (commandline -opc)
    for word in $words[2..-1]
        switch "$at $word"
            case )";

constexpr const char* kMiddle = R"(
                set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
complete -c cubindctl -f
)";

// Within single quotes fish knows two escapes.
std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += std::string(c == '\'' || c == '\\' ? "\\" : "") + c;
  }
  return quoted + "'";
}

std::string value(const OptionHelp& option, const CommandHelp& program) {
  if (option.value.empty()) {
    return "";
  }
  if (option.value == "FILE") {
    return " -r -F";
  }
  if (option.value == "FOLDER") {
    return " -x -a '(__fish_complete_directories)'";
  }
  const std::vector<std::string> values = known_values(option, program);
  return values.empty() ? " -x" : " -x -a " + fish_quoted(join(values, " "));
}

std::string line(const CommandPath& path, const std::string& rest) {
  return "complete -c cubindctl -n " + fish_quoted("__cubindctl_at " + fish_quoted(path_text(path))) + rest +
         "\n";
}

std::string positional(const OptionHelp& option, const CommandHelp& program) {
  if (option.value == "FILE") {
    return " -F";
  }
  const std::vector<std::string> values = known_values(option, program);
  return values.empty() ? "" : " -a " + fish_quoted(join(values, " "));
}

std::string lines(const CommandPath& path) {
  const CommandHelp& program = *path.front();
  std::string text;
  for (const CommandHelp& below : path.back()->commands) {
    text += line(path, " -a " + below.name + " -d " + fish_quoted(below.text));
  }
  for (const OptionHelp& option : path.back()->positionals) {
    if (const std::string rest = positional(option, program); !rest.empty()) {
      text += line(path, rest);
    }
  }
  for (const OptionHelp& option : options_of(path)) {
    std::string names;
    for (const std::string& name : option.names) {
      names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    text += line(path, names + value(option, program) + " -d " + fish_quoted(option.text));
  }
  return text;
}

}  // namespace

std::string fish_script(const CommandHelp& program) {
  std::string commands, text;
  for (const CommandPath& path : every_command(program)) {
    if (path.size() > 1) {
      commands += (commands.empty() ? "" : " ") + fish_quoted(path_text(path));
    }
    text += lines(path);
  }
  return kHead + commands + kMiddle + text;
}

}  // namespace cubind::ctl
