// Completes the end of a command line. The shells ask for it by `cubindctl __complete WORDS...`.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "client/cubindctl/command_help.hpp"

namespace cubind::ctl {

struct Candidate {
  std::string word;
  std::string text;  // a description; may be empty
};

struct Completion {
  enum class Paths { None, Files, Folders };

  std::vector<Candidate> candidates;  // each begins with the typed part
  Paths paths = Paths::None;          // the shell completes these itself
};

/// The names of the kernels that the daemon at an address knows; an empty address is the default one.
using KernelNames = std::function<std::vector<std::string>(const std::string& address)>;

/// Completes the last of the words that follow the program's name; it may be empty. bash gives "--tune=a" as
/// the three words "--tune", "=" and "a", and gets "auto"; the other shells give one word and get
/// "--tune=auto". Asks for kernel names only where one is to be completed.
Completion complete(const CommandHelp& program, const std::vector<std::string>& words,
                    const KernelNames& kernel_names);

/// The lines that a shell reads: each candidate, with a tab before its text, and last ":files" or ":folders".
std::string to_string(const Completion& completion);

/// The script that makes "bash", "zsh" or "fish" ask. Throws Error(InvalidArgument) for another shell.
std::string_view completion_script(const std::string& shell);

}  // namespace cubind::ctl
