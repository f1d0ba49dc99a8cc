// cubindctl completion: what the shells have in common, and bash. The others have files of their own.
#include "client/cubindctl/completion.hpp"

#include <iostream>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/cubindctl/command_line.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/completion_words.hpp"

namespace cubind::ctl {
namespace {

constexpr const char* kBashHead = R"(# Completion of cubindctl for bash, made by `cubindctl completion bash`.
_cubindctl() {
  local current=${COMP_WORDS[COMP_CWORD]} at=cubindctl option='' words='' word i
  [[ $current == '=' ]] && current=''
  COMPREPLY=()
  # Which command it is, and the option whose value is asked for.
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then
      continue
    elif [[ -n $option ]]; then
      option=''
      continue
    fi
    case "$at $word" in
)";

constexpr const char* kBashTail = R"(  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -F _cubindctl cubindctl
)";

constexpr const char* kNoWords = "words=''";

// What completes a value: sets `words`, or asks bash for files or folders.
std::string bash_value(const OptionHelp& option, const CommandHelp& program) {
  if (option.value == "FILE") {
    return "compopt -o default";
  }
  if (option.value == "FOLDER") {
    return "compopt -o dirnames";
  }
  return "words=" + shell_quoted(join(known_values(option, program), " "));
}

// "'cubindctl tune --shapes' | 'cubindctl tune --problem'".
std::string bash_patterns(const CommandPath& path, const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " | ") + shell_quoted(path_text(path) + " " + word);
  }
  return text;
}

// The cases that read a word of the command line: a command below, or an option that takes a value.
std::string bash_steps(const CommandPath& path) {
  std::string text;
  if (const auto commands = command_names(*path.back()); !commands.empty()) {
    text += "      " + bash_patterns(path, commands) + ") at=\"$at $word\" ;;\n";
  }
  std::vector<std::string> with_value;
  for (const OptionHelp& option : options_of(path)) {
    if (!option.value.empty()) {
      with_value.insert(with_value.end(), option.names.begin(), option.names.end());
    }
  }
  return text + "      " + bash_patterns(path, with_value) + ") option=$word ;;\n";
}

std::string bash_values(const CommandPath& path) {
  std::string text;
  for (const OptionHelp& option : options_of(path)) {
    const std::string value = bash_value(option, *path.front());
    if (!option.value.empty() && value != kNoWords) {
      text += "    " + bash_patterns(path, option.names) + ") " + value + " ;;\n";
    }
  }
  return text;
}

std::string bash_words(const CommandPath& path) {
  const CommandHelp& command = *path.back();
  std::string names;
  for (const OptionHelp& option : options_of(path)) {
    names += (names.empty() ? "" : " ") + join(option.names, " ");
  }
  std::string text = "    " + shell_quoted(path_text(path) + " ") + ")\n";
  text += "      if [[ $current == -* ]]; then words=" + shell_quoted(names);
  if (!command.commands.empty()) {
    text += "; else words=" + shell_quoted(join(command_names(command), " "));
  } else if (!command.positionals.empty()) {
    const std::string value = bash_value(command.positionals.front(), *path.front());
    text += value == kNoWords ? "" : "; else " + value;
  }
  return text + "; fi ;;\n";
}

std::string bash_script(const CommandHelp& program) {
  const std::vector<CommandPath> commands = every_command(program);
  std::string text = kBashHead;
  for (const CommandPath& path : commands) {
    text += bash_steps(path);
  }
  text += "    esac\n  done\n  case \"$at $option\" in\n";
  for (const CommandPath& path : commands) {
    text += bash_values(path) + bash_words(path);
  }
  return text + kBashTail;
}

}  // namespace

std::string completion_script(const CommandHelp& program, const std::string& shell) {
  if (shell == "bash") {
    return bash_script(program);
  }
  if (shell == "zsh") {
    return zsh_script(program);
  }
  if (shell == "fish") {
    return fish_script(program);
  }
  throw Error(ErrorCode::InvalidArgument, "shell", quoted(shell) + " is none of bash, zsh, fish");
}

ExitCode run(const CompletionOptions& options, const CommonOptions&) {
  std::cout << completion_script(command_help(), options.shell) << std::flush;
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
