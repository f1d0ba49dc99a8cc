// The settings from command line and environment.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "server/access/socket_group.hpp"

namespace cubind {

struct Config {
  std::filesystem::path database;    // default: XDG data folder; kernels that callers define lie next to it
  std::string store_url;             // of a database of PostgreSQL, in place of that file; empty: none
  std::uint64_t database_bytes = 0;  // limit of its size; 0: none
  std::filesystem::path socket;      // default: $XDG_RUNTIME_DIR/cubind/cubind.sock
  std::optional<SocketGroup> socket_group;  // which has a socket of its own
  std::string listen;                       // host:port; empty: the socket alone
  std::string metrics;                      // host:port of the page for Prometheus; empty: none
  std::string web;                          // host:port of the pages; empty: none
  std::filesystem::path web_program;        // next to this executable
  bool insecure = false;
  bool sealed = false;            // questions start no compile and no job
  bool fsck = false;              // check the database instead of serving it
  std::filesystem::path copy_to;  // copy the store to this file instead of serving it; empty: do not
  std::string copy_to_url;        // or to this database
  std::filesystem::path tls_certificate, tls_key;  // PEM; empty: no TLS
  std::filesystem::path tls_client_ca;             // empty: clients need no certificate
  std::filesystem::path bundle, trust;             // served alone and verified by; empty: none
  std::filesystem::path tokens;                    // whom TCP callers may be; empty: they are not told apart
  std::filesystem::path audit_log;                 // empty: none
  std::vector<std::filesystem::path> kernels;      // folders of specs, the shipped ones first
  std::vector<std::filesystem::path>
      headers;                   // folders that every kernel may read, the shipped one among them
  std::filesystem::path tables;  // folder of shipped tables; empty: none
  bool shipped_tables = true;
  std::size_t cache_bytes = std::size_t{256} << 20;
  std::uint64_t artifact_bytes = std::uint64_t{20} << 30;  // of cubins in the store; 0: no limit
  std::string log_level = "info", log_format = "text";
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
