#include "client/cubindctl/terminal/completion.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "base/error.hpp"
#include "base/identifier.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"

namespace cubind::ctl {
namespace {

/// A key that waits longer than this feels stuck.
constexpr std::chrono::milliseconds kPatience{100};

/// Reads a command line word by word.
class Reader {
 public:
  Reader(const CLI::App& program, const KernelNames& kernel_names)
      : command_(&program), kernel_names_(kernel_names) {}

  void read(const std::string& word) {
    if (open_ != nullptr) {
      address_ = open_->check_lname("address") ? word : address_;
      open_ = nullptr;
    } else if (word.starts_with('-')) {
      const CLI::Option* option = find_option(word);
      open_ = option != nullptr && option->get_items_expected_max() > 0 ? option : nullptr;
    } else if (const CLI::App* below = find_command(word)) {
      command_ = below;
    } else {
      ++positionals_;
    }
  }

  /// What may follow. `is_option`: the next word begins with a dash.
  std::vector<std::string> candidates(bool is_option) const {
    if (open_ != nullptr) {
      return values_of(*open_);
    }
    if (is_option) {
      return option_names();
    }
    std::vector<std::string> words;
    for (const CLI::App* below : commands()) {
      words.push_back(below->get_name());
    }
    const auto positionals = command_->get_options([](const CLI::Option* o) { return o->get_positional(); });
    if (positionals_ < positionals.size()) {
      std::ranges::copy(values_of(*positionals[positionals_]), std::back_inserter(words));
    }
    return words;
  }

 private:
  std::vector<const CLI::App*> commands() const {
    return command_->get_subcommands([](const CLI::App*) { return true; });
  }

  const CLI::App* find_command(const std::string& name) const {
    const auto below = commands();
    const auto found = std::ranges::find(below, name, &CLI::App::get_name);
    return found == below.end() ? nullptr : *found;
  }

  const CLI::Option* find_option(const std::string& name) const {
    const CLI::Option* option = nullptr;
    for (const CLI::App* app = command_; app != nullptr && option == nullptr; app = app->get_parent()) {
      option = app->get_option_no_throw(name);
    }
    return option;
  }

  /// Those of the command and of the commands above it, which it takes too.
  std::vector<std::string> option_names() const {
    std::vector<std::string> names;
    for (const CLI::App* app = command_; app != nullptr; app = app->get_parent()) {
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& name : option->get_lnames()) {
          names.push_back("--" + name);
        }
      }
    }
    return names;
  }

  /// A type's name is the kind of a value or its choices between bars.
  std::vector<std::string> values_of(const CLI::Option& option) const {
    const std::string type = option.get_type_name();
    if (type.ends_with("KERNEL")) {
      return kernel_names_(address_);
    }
    std::vector<std::string> choices;
    std::istringstream text(type);
    for (std::string choice; type.find('|') != std::string::npos && std::getline(text, choice, '|');) {
      choices.push_back(choice);
    }
    return choices;
  }

  const CLI::App* command_;
  const KernelNames& kernel_names_;
  const CLI::Option* open_ = nullptr;  // its value is the next word
  std::size_t positionals_ = 0;
  std::string address_;
};

/// The kernel names of a daemon that answers at once, without those that are more than a word to a shell.
std::vector<std::string> kernel_names(const std::string& address) {
  std::vector<std::string> names;
  try {
    const v1::ListKernelsReply reply = Connection(resolve_address(address)).list_kernels(kPatience);
    for (const v1::Kernel& kernel : reply.kernels()) {
      if (is_identifier(kernel.name())) {
        names.push_back(kernel.name());
      }
    }
  } catch (const Error&) {  // a completion has nowhere to say why
    return {};
  }
  return names;
}

}  // namespace

std::vector<std::string> complete(const CLI::App& program, const std::string& line,
                                  const KernelNames& kernel_names) {
  const std::size_t begin = line.find_last_of(' ') + 1;
  const std::string current = line.substr(begin);
  std::istringstream before(line.substr(0, begin));
  std::string word;
  before >> word;  // the program's name
  Reader reader(program, kernel_names);
  while (before >> word) {
    reader.read(word);
  }
  std::vector<std::string> candidates = reader.candidates(current.starts_with('-'));
  std::erase_if(candidates, [&](const std::string& one) { return !one.starts_with(current); });
  return candidates;
}

void print_completions(const CLI::App& program) {
  const char* const line = std::getenv("COMP_LINE");
  const char* const point = std::getenv("COMP_POINT");
  if (line == nullptr || point == nullptr) {
    throw Error(ErrorCode::InvalidArgument, "COMP_LINE", "is not set: a shell's completion sets it");
  }
  const auto typed = std::string(line).substr(0, std::strtoul(point, nullptr, 10));
  for (const std::string& candidate : complete(program, typed, kernel_names)) {
    std::cout << candidate << "\n";
  }
}

ExitCode run(const CompletionOptions& options, const CommonOptions&) {
  const char* const zsh = options.shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
  std::cout << zsh << "complete -o default -C 'cubindctl __complete' cubindctl\n";
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
