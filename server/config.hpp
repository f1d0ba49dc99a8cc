// The settings from command line and environment.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cubind {

struct Config {
  std::filesystem::path database;    // default: XDG data folder
  std::uint64_t database_bytes = 0;  // limit of its size; 0: none
  std::filesystem::path socket;      // default: $XDG_RUNTIME_DIR/cubind/cubind.sock
  std::string listen;                // host:port; empty: the socket alone
  bool insecure = false;
  std::vector<std::filesystem::path> kernels;  // folders of specs, the shipped ones first
  std::vector<std::filesystem::path>
      headers;                   // folders that every kernel may read, the shipped one among them
  std::filesystem::path tables;  // folder of shipped tables; empty: none
  bool shipped_tables = true;
  std::size_t cache_bytes = std::size_t{256} << 20;
  std::string log_level = "info";
  std::optional<std::chrono::milliseconds> idle_verify{
      std::chrono::minutes(5)};          // after so long; absent: never
  std::filesystem::path until_unlocked;  // the daemon ends when no process locks it; empty: it stays

  bool local_agent = true;
  std::filesystem::path agent_program;  // empty: next to this executable
  std::vector<std::string> agent_arguments;

  std::chrono::milliseconds lease{15'000};
  std::chrono::milliseconds heartbeat{2'000};
};

/// Parses the arguments; absent: help or the version was printed, and the process ends with `exit_code`. A
/// wrong argument is reported on stderr in the same way. Throws Error(InvalidArgument) for a fault that only
/// makes sense together.
std::optional<Config> parse_command_line(int argc, const char* const* argv, int& exit_code);

}  // namespace cubind
