// Where the settings come from: flags, then the environment, then a file, then defaults.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace cubind {

/// A setting as --check-config prints it.
struct Setting {
  std::string name;    // "socket"
  std::string value;   // empty: none
  std::string source;  // "flag", "CUBIND_SOCKET", "FILE" or "default"
};

/// The parts between colons, without those that are empty.
std::vector<std::string> parts_of(const std::string& text);

/// "--db-max-bytes" has CUBIND_DB_MAX_BYTES. "--kernels" has none: CUBIND_KERNEL_PATH adds folders.
std::string environment_name(const std::string& option);

/// The file that is read if none is named: $XDG_CONFIG_HOME/cubind/cubind.toml, or that in ~/.config; empty:
/// there is none.
std::filesystem::path default_config_file();

/// Gives the options that the parsed flags left open the values of environment and file, and lists every
/// setting. `file` empty: none. A variable that is empty counts as unset; one for a repeatable option has its
/// values between colons. Throws InvalidArgument with the variable, or the file and its key, where a value is
/// bad or a key unknown.
std::vector<Setting> fill_open_options(CLI::App& app, const std::filesystem::path& file);

}  // namespace cubind
