#include "client/cubindctl/completion.hpp"

#include <algorithm>
#include <iostream>

#include "base/error.hpp"
#include "base/identifier.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/command_line.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/shells/bash.hpp"
#include "client/cubindctl/shells/fish.hpp"
#include "client/cubindctl/shells/zsh.hpp"

namespace cubind::ctl {
namespace {

/// A key that waits longer than this feels stuck.
constexpr std::chrono::milliseconds kPatience{100};

/// Joins the parts that bash makes of a word at "=".
std::vector<std::string> joined_at_equals(const std::vector<std::string>& parts) {
  std::vector<std::string> words;
  bool is_continued = false;
  for (const std::string& part : parts) {
    if (!words.empty() && (is_continued || part == "=")) {
      words.back() += part;
    } else {
      words.push_back(part);
    }
    is_continued = part == "=";
  }
  return words;
}

/// What a shell takes for one word and for nothing else: a folder's author chooses the names of its kernels.
bool is_plain_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '+';
  };
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, is_plain);
}

const OptionHelp* find(const std::vector<OptionHelp>& options, const std::string& name) {
  const auto found = std::ranges::find_if(
      options, [&](const OptionHelp& option) { return std::ranges::count(option.names, name) > 0; });
  return found == options.end() ? nullptr : &*found;
}

/// Reads a command line word by word.
class Reader {
 public:
  Reader(const CommandHelp& program, const KernelNames& kernel_names)
      : path_{&program}, options_(options_of(path_)), kernel_names_(kernel_names) {}

  void read(const std::string& word) {
    if (open_option_ != nullptr) {
      set(*open_option_, word);
      open_option_ = nullptr;
    } else if (word.starts_with('-')) {
      read_option(word);
    } else if (const CommandHelp* below = command(word)) {
      path_.push_back(below);
      options_ = options_of(path_);
    } else {
      ++positionals_;
    }
  }

  /// The candidates leave out the first `kept` characters of the word.
  Completion complete(const std::string& word, std::size_t kept) const {
    Completion found;
    const std::size_t equals = word.find('=');
    if (open_option_ != nullptr) {
      add_values(*open_option_, "", found);
    } else if (word.starts_with('-') && equals != std::string::npos) {
      if (const OptionHelp* option = find(options_, word.substr(0, equals))) {
        add_values(*option, word.substr(0, equals + 1), found);
      }
    } else if (word.starts_with('-')) {
      for (const OptionHelp& option : options_) {
        for (const std::string& name : option.names) {
          found.candidates.push_back({name, option.text});
        }
      }
    } else {
      add_words(found);
    }
    std::erase_if(found.candidates, [&](const Candidate& one) { return !one.word.starts_with(word); });
    for (Candidate& candidate : found.candidates) {
      candidate.word.erase(0, kept);
    }
    return found;
  }

 private:
  const CommandHelp* command(const std::string& name) const {
    const auto& commands = path_.back()->commands;
    const auto found = std::ranges::find(commands, name, &CommandHelp::name);
    return found == commands.end() ? nullptr : &*found;
  }

  void read_option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const OptionHelp* option = find(options_, word.substr(0, equals));
    if (option == nullptr || option->value.empty()) {
      return;
    }
    if (equals == std::string::npos) {
      open_option_ = option;
    } else {
      set(*option, word.substr(equals + 1));
    }
  }

  void set(const OptionHelp& option, const std::string& value) {
    if (option.names.back() == "--address") {
      address_ = value;
    }
  }

  /// Candidates other than options: the commands, and the next positional.
  void add_words(Completion& found) const {
    for (const CommandHelp& below : path_.back()->commands) {
      found.candidates.push_back({below.name, below.text});
    }
    const auto& positionals = path_.back()->positionals;
    if (positionals_ < positionals.size()) {
      add_values(positionals[positionals_], "", found);
    } else if (!positionals.empty() && positionals.back().repeatable) {
      add_values(positionals.back(), "", found);
    }
  }

  void add_values(const OptionHelp& option, const std::string& before, Completion& found) const {
    if (option.value == "FILE") {
      found.paths = Completion::Paths::Files;
    } else if (option.value == "FOLDER") {
      found.paths = Completion::Paths::Folders;
    } else if (option.value == "COMMAND") {
      for (const CommandHelp& command : path_.front()->commands) {
        found.candidates.push_back({before + command.name, command.text});
      }
    } else {
      const bool is_kernel = option.value == "KERNEL";
      for (const std::string& value : is_kernel ? kernel_names_(address_) : choices_of(option)) {
        if (!is_kernel || is_plain_word(value)) {
          found.candidates.push_back({before + value, ""});
        }
      }
    }
  }

  CommandPath path_;
  std::vector<OptionHelp> options_;
  const KernelNames& kernel_names_;
  const OptionHelp* open_option_ = nullptr;  // its value is the next word
  std::size_t positionals_ = 0;
  std::string address_;
};

/// The daemon's kernel names, if it is there and answers at once.
std::vector<std::string> kernel_names(const std::string& address) {
  std::vector<std::string> names;
  try {
    const v1::ListKernelsReply reply = Connection(resolve_address(address)).list_kernels(kPatience);
    for (const v1::Kernel& kernel : reply.kernels()) {
      names.push_back(kernel.name());
    }
  } catch (const Error&) {  // a completion has nowhere to say why
    return {};
  }
  return names;
}

}  // namespace

Completion complete(const CommandHelp& program, const std::vector<std::string>& words,
                    const KernelNames& kernel_names) {
  if (words.empty()) {
    return {};
  }
  const std::vector<std::string> whole = joined_at_equals(words);
  Reader reader(program, kernel_names);
  std::for_each(whole.begin(), whole.end() - 1, [&](const std::string& word) { reader.read(word); });
  // In a word that bash split, a candidate replaces the part behind the "=".
  const std::size_t replaced = words.back() == "=" ? 0 : words.back().size();
  return reader.complete(whole.back(), whole.back().size() - replaced);
}

std::string to_string(const Completion& completion) {
  std::string text;
  for (const Candidate& candidate : completion.candidates) {
    text += candidate.word + (candidate.text.empty() ? "" : "\t" + candidate.text) + "\n";
  }
  switch (completion.paths) {
    case Completion::Paths::None:
      return text;
    case Completion::Paths::Files:
      return text + ":files\n";
    case Completion::Paths::Folders:
      return text + ":folders\n";
  }
  return text;
}

std::string_view completion_script(const std::string& shell) {
  if (shell == "bash") {
    return kBashCompletion;
  }
  if (shell == "zsh") {
    return kZshCompletion;
  }
  if (shell == "fish") {
    return kFishCompletion;
  }
  throw Error(ErrorCode::InvalidArgument, "shell", quoted(shell) + " is not one of bash, zsh, fish");
}

ExitCode run(const CompletionOptions& options, const CommonOptions&) {
  std::cout << completion_script(options.shell) << std::flush;
  return ExitCode::Ok;
}

ExitCode run(const CompleteOptions& options, const CommonOptions&) {
  std::cout << to_string(complete(command_help(), options.words, kernel_names)) << std::flush;
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
