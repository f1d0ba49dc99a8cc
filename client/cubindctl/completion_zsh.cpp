// The completion for zsh: a function for each command, which hands on to those below it.
#include "base/text.hpp"
#include "client/cubindctl/completion_words.hpp"

namespace cubind::ctl {
namespace {

// Within the brackets of a specification of _arguments.
std::string in_brackets(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += std::string(c == '[' || c == ']' || c == ':' || c == '\\' ? "\\" : "") + c;
  }
  return escaped;
}

std::string function_of(const CommandPath& path) { return "_" + path_text(path, "_"); }

std::string action_of(const OptionHelp& option, const CommandHelp& program) {
  if (option.value == "FILE") {
    return "_files";
  }
  if (option.value == "FOLDER") {
    return "_files -/";
  }
  const std::vector<std::string> values = known_values(option, program);
  return values.empty() ? " " : "(" + join(values, " ") + ")";
}

// "'(-o --output)'{-o+,--output=}'[file]:--output:_files'".
std::string specification(const OptionHelp& option, const CommandHelp& program) {
  std::string value;
  std::vector<std::string> names = option.names;
  if (!option.value.empty()) {
    value = ":" + option.names.back() + ":" + action_of(option, program);
    for (std::string& name : names) {
      name += name.starts_with("--") ? "=" : "+";  // the value may be a word of its own or not
    }
  }
  const std::string rest = "[" + in_brackets(option.text) + "]" + value;
  if (names.size() == 1) {
    return shell_quoted((option.repeatable ? "*" : "") + names.front() + rest);
  }
  const std::string others = option.repeatable ? "*" : "(" + join(option.names, " ") + ")";
  return shell_quoted(others) + "{" + join(names, ",") + "}" + shell_quoted(rest);
}

std::string positional(const OptionHelp& option, std::size_t place, const CommandHelp& program) {
  const std::string where = option.repeatable ? "*" : std::to_string(place + 1);
  return shell_quoted(where + ":" + option.names.front() + ":" + action_of(option, program));
}

std::string leaf(const CommandPath& path) {
  std::string text;
  const auto& positionals = path.back()->positionals;
  for (std::size_t i = 0; i < positionals.size(); ++i) {
    text += " \\\n    " + positional(positionals[i], i, *path.front());
  }
  return text + "\n";
}

std::string branch(const CommandPath& path) {
  std::string described, cases;
  for (const CommandHelp& below : path.back()->commands) {
    CommandPath longer = path;
    longer.push_back(&below);
    described += "    " + shell_quoted(below.name + ":" + below.text) + "\n";
    cases += "        " + below.name + ") " + function_of(longer) + " && ret=0 ;;\n";
  }
  return " \\\n    '1: :->command' \\\n    '*:: :->arguments' && ret=0\n"
         "  local -a commands=(\n" +
         described +
         "  )\n"
         "  case $state in\n"
         "    command) _describe command commands && ret=0 ;;\n"
         "    arguments)\n      case $words[1] in\n" +
         cases + "      esac ;;\n  esac\n  return ret\n";
}

std::string function(const CommandPath& path) {
  const bool has_commands = !path.back()->commands.empty();
  std::string text = function_of(path) + "() {\n";
  if (has_commands) {
    text += "  local curcontext=$curcontext state line ret=1\n  typeset -A opt_args\n";
  }
  text += has_commands ? "  _arguments -C" : "  _arguments";
  for (const OptionHelp& option : options_of(path)) {
    text += " \\\n    " + specification(option, *path.front());
  }
  return text + (has_commands ? branch(path) : leaf(path)) + "}\n\n";
}

}  // namespace

std::string zsh_script(const CommandHelp& program) {
  std::string text =
      "#compdef cubindctl\n# Completion of cubindctl for zsh, made by `cubindctl completion zsh`.\n\n";
  for (const CommandPath& path : every_command(program)) {
    text += function(path);
  }
  // Read by `source`, or autoloaded as the function of this name.
  return text +
         "if [[ $funcstack[1] == _cubindctl ]]; then\n  _cubindctl \"$@\"\nelse\n  compdef _cubindctl "
         "cubindctl\nfi\n";
}

}  // namespace cubind::ctl
