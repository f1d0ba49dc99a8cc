#include "client/cubindctl/terminal/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <span>

#include "base/number_option.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "client/cubindctl/subcommands.hpp"
#include "client/cubindctl/terminal/completion.hpp"
#include "tuner/spec/spec_folder.hpp"

namespace cubind::ctl {
namespace {

void add_common(CLI::App& app, CommonOptions& common) {
  app.add_option("--address", common.address,
                 "unix:///path/to/socket, tls://host:port or host:port; default: $CUBIND_ADDRESS")
      ->type_name("ADDRESS");
  app.add_option_function<std::string>(
         "--token-file", [](const std::string& file) { ::setenv("CUBIND_TOKEN_FILE", file.c_str(), 1); },
         "holds the token for a daemon of a team; default: $CUBIND_TOKEN_FILE")
      ->type_name("FILE");
  app.add_flag("--json", common.json, "print JSON; every number names its unit");
  app.add_option_function<double>(
         "--timeout",
         [&common](double seconds) {
           common.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
         },
         "limit in seconds; default: 30, and none for tune, verify, backup and jobs --watch")
      ->type_name("SECONDS")
      ->check(CLI::Validator(number(0.001, 1e6).read, ""));
  app.set_version_flag("--version", std::string("cubindctl ") + kVersion);
}

void set_up(CLI::App& app, CommandLine& line) {
  app.footer(exit_code_help());
  app.require_subcommand(1);
  app.fallthrough();
  add_common(app, line.common);
  add_subcommands(app, line);
  if (const auto variants = shipped_variants()) {
    app.footer(std::string(exit_code_help()) + "\nThe pages are in " +
               (variants->parent_path() / "docs").string());
  }
}

/// The commands that were given, from cubindctl itself.
std::vector<const CLI::App*> path_of(const CLI::App& app) {
  std::vector<const CLI::App*> path{&app};
  while (!path.back()->get_subcommands().empty()) {
    path.push_back(path.back()->get_subcommands().back());
  }
  return path;
}

std::string unknown_option(const std::string& word, const std::vector<const CLI::App*>& path) {
  std::vector<std::string> names;
  for (const CLI::App* command : path) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  const std::string name = word.substr(0, word.find('='));
  const auto nearest = nearest_word(name, names);
  return quoted(name) + " is not an option" + (nearest ? ", did you mean " + quoted(*nearest) + "?" : "");
}

/// The first option or word that the command needs and was not given, with what it takes; empty: none.
std::string missing(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_required() && option->count() == 0) {
      const std::string type = option->get_type_name();
      const bool is_choice = type.find('|') != std::string::npos;
      return option->get_name(option->get_positional()) + " is required: " +
             (is_choice ? "one of " + replaced(type, "|", ", ") : type + ", " + option->get_description());
    }
  }
  return "";
}

/// What is wrong with the words, and of which command.
std::string complaint(const CLI::App& app, const CLI::ParseError& error, std::span<const char* const> words) {
  const std::vector<std::string> left = app.remaining(true);  // in no certain order
  const auto first =
      std::ranges::find_first_of(words, left, {}, [](const char* word) { return std::string(word); });
  const std::vector<const CLI::App*> path = path_of(app);
  std::vector<std::string> typed, names;
  for (const CLI::App* command : path) {
    typed.push_back(command->get_name());
  }
  for (const CLI::App* command : path.back()->get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  const std::string where = join(typed, " ") + ": ";
  const bool too_many = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool too_few = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (first == words.end() || (!too_many && !too_few)) {
    const std::string needed = too_few ? missing(*path.back()) : "";
    const bool needs_command = too_few && needed.empty() && !names.empty();
    return where + (needs_command    ? "a command is required: one of " + join(names, ", ")
                    : needed.empty() ? error.what()
                                     : needed);
  }
  if (**first == '-') {
    return where + unknown_option(*first, path);
  }
  if (!names.empty()) {
    return where + quoted(*first) + " is not a command" + suggestion(*first, names);
  }
  const bool is_part = std::string_view(*first).find('=') != std::string_view::npos &&
                       path.back()->get_option_no_throw("--problem") != nullptr;
  const char* const hint = is_part ? ": a problem is one word, as in --problem N=4096,T=bf16" : "";
  return where + (too_many || is_part ? quoted(*first) + " is one word too many" + hint : error.what());
}

}  // namespace

std::variant<CommandLine, ExitCode> parse_command_line(int argc, const char* const* argv) {
  CLI::App app("Tunes CUDA kernels through a cubind daemon and fetches the winners.", "cubindctl");
  CommandLine line;
  set_up(app, line);
  if (argc > 1 && std::string_view(argv[1]) == "__complete") {
    print_completions(app);
    return ExitCode::Ok;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(error);  // prints help or version
      return ExitCode::Ok;
    }
    std::cerr << complaint(app, error, {argv, static_cast<std::size_t>(argc)})
              << "\nRun with --help for more information.\n";
    return ExitCode::Invalid;
  }
  return line;
}

}  // namespace cubind::ctl
