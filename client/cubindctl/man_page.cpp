// cubindctl man.
#include "client/cubindctl/man_page.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "client/cubindctl/command_line.hpp"
#include "client/cubindctl/commands.hpp"

namespace cubind::ctl {
namespace {

// Escapes text for roff: a minus stays one to copy, and no line becomes a request.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    const bool at_start = escaped.empty() || escaped.back() == '\n';
    if (at_start && (c == '.' || c == '\'')) {
      escaped += "\\&";
    }
    escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '`' ? "\\(ga" : std::string(1, c);
  }
  return escaped;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

std::string heading(const std::string& name) { return ".SH " + name + "\n"; }

// A tagged paragraph.
std::string item(const std::string& tag, const std::string& text) {
  return ".TP\n" + tag + "\n" + roff(text) + "\n";
}

// Users type "serve|wait|fail" and replace "FILE".
std::string value_text(const OptionHelp& option) {
  if (choices_of(option).empty()) {
    return italic(option.value);
  }
  std::vector<std::string> choices;
  for (const std::string& choice : choices_of(option)) {
    choices.push_back(bold(choice));
  }
  return join(choices, "|");
}

std::string option_items(const std::vector<OptionHelp>& options) {
  std::string text;
  for (const OptionHelp& option : options) {
    std::vector<std::string> names;
    for (const std::string& name : option.names) {
      names.push_back(bold(name));
    }
    text += item(join(names, ", ") + (option.value.empty() ? "" : " " + value_text(option)), option.text);
  }
  return text;
}

std::string synopsis(const CommandPath& path) {
  const CommandHelp& command = *path.back();
  std::string text = heading("SYNOPSIS") + bold(path_text(path));
  for (const OptionHelp& option : command.options) {
    if (option.required) {
      text += " " + bold(option.names.back()) + " " + value_text(option) + (option.repeatable ? " ..." : "");
    }
  }
  text += " [" + italic("OPTIONS") + "]";
  for (const OptionHelp& positional : command.positionals) {
    const std::string name = value_text(positional) + (positional.repeatable ? " ..." : "");
    text += " " + (positional.required ? name : "[" + name + "]");
  }
  if (!command.commands.empty()) {
    text += command.needs_command ? " " + italic("COMMAND") : " [" + italic("COMMAND") + "]";
  }
  return text + "\n";
}

std::string sentence(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text.ends_with('.') ? text : text + ".";
}

std::string commands_section(const CommandPath& path) {
  std::string text;
  for (const CommandHelp& below : path.back()->commands) {
    text += item(bold(path_text(path, "-") + "-" + below.name) + "(1)", sentence(below.text));
  }
  return text.empty() ? "" : heading("COMMANDS") + text;
}

std::string exit_section() {
  std::istringstream help(exit_code_help());
  std::string text = heading("\"EXIT STATUS\"");
  std::string line;
  std::getline(help, line);  // its heading
  while (std::getline(help, line)) {
    std::istringstream words(line);
    std::string code, meaning;
    words >> code >> std::ws;
    std::getline(words, meaning);
    text += item(bold(code), meaning);
  }
  return text;
}

constexpr const char* kEnvironment = R"(.SH ENVIRONMENT
.TP
\fBCUBIND_ADDRESS\fR
Where the daemon listens, if \fB\-\-address\fR does not say it. Without either: the socket of the user's daemon,
\fI$XDG_RUNTIME_DIR/cubind/cubind.sock\fR, else that of the system's, \fI/run/cubind/cubind.sock\fR.
)";

}  // namespace

std::string man_page_file(const CommandPath& path) { return path_text(path, "-") + ".1"; }

std::string man_page(const CommandPath& path) {
  const CommandHelp& command = *path.back();
  const std::string name = path_text(path, "-");
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string text = ".TH \"" + roff(title) + "\" 1 \"\" \"cubind " + kVersion + "\" \"cubind\"\n";
  text += heading("NAME") + roff(name) + " \\- " + roff(command.text) + "\n" + synopsis(path);
  text += heading("DESCRIPTION") + roff(sentence(command.text)) + "\n" + commands_section(path);
  if (!command.positionals.empty()) {
    text += heading("ARGUMENTS");
    for (const OptionHelp& positional : command.positionals) {
      text += item(value_text(positional), positional.text);
    }
  }
  text += heading("OPTIONS") + option_items(command.options);
  if (path.size() > 1) {
    // The options of the commands above it; help is listed already.
    std::vector<OptionHelp> common = options_of(path);
    common.erase(common.begin(), common.begin() + static_cast<std::ptrdiff_t>(command.options.size()));
    text += heading("\"COMMON OPTIONS\"") + option_items(common);
  }
  text += exit_section() + kEnvironment;
  const std::string parent =
      path.size() == 1 ? "" : bold(path_text({path.begin(), path.end() - 1}, "-")) + "(1)";
  return parent.empty() ? text : text + heading("\"SEE ALSO\"") + parent + "\n";
}

namespace {

ExitCode write_pages(const std::vector<CommandPath>& commands, const std::string& folder) {
  create_folders(folder);
  for (const CommandPath& path : commands) {
    const std::filesystem::path file = std::filesystem::path(folder) / man_page_file(path);
    write_file_atomic(file, man_page(path));
    std::cout << file.string() << "\n";
  }
  return ExitCode::Ok;
}

}  // namespace

ExitCode run(const ManOptions& options, const CommonOptions&) {
  const CommandHelp program = command_help();
  const std::vector<CommandPath> commands = every_command(program);
  if (!options.folder.empty()) {
    return write_pages(commands, options.folder);
  }
  std::vector<std::string> words{program.name};
  words.insert(words.end(), options.command.begin(), options.command.end());
  const std::string asked = join(words, " ");
  std::vector<std::string> names;
  for (const CommandPath& path : commands) {
    if (path_text(path) == asked) {
      std::cout << man_page(path) << std::flush;
      return ExitCode::Ok;
    }
    names.push_back(path_text(path));
  }
  throw Error(ErrorCode::InvalidArgument, "command",
              quoted(asked) + " is not a command" + suggestion(asked, names));
}

}  // namespace cubind::ctl
