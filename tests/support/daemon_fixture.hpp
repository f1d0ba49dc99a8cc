// A real daemon in a folder of its own: `cubind` with its agent and workers, a replayed table as its GPU.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.hpp"
#include "client/connection.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/process_tree.hpp"
#include "tuner/table/table.hpp"

namespace cubind::test {

/// Deadline of the calls of a test: long, because many tests may share two cores.
inline constexpr std::chrono::milliseconds kPatience{60'000};

struct DaemonOptions {
  std::filesystem::path folder;                     // store, socket, log and lock files
  std::filesystem::path store = {}, socket = {};    // empty: in the folder
  std::vector<std::filesystem::path> kernels = {};  // --kernels
  std::filesystem::path tables = {};                // imported into a new store; empty: none
  std::filesystem::path replay = {};                // a table; empty: no GPU
  std::filesystem::path bundle = {}, trust = {};   // served instead of a store, without an agent; empty: none
  std::filesystem::path faults = {};               // of the replay device; empty: none
  std::vector<std::string> arguments = {};         // further ones
  std::string failpoints = {};                     // CUBIND_FAILPOINTS
  std::vector<std::string> environment = {};       // further variables, NAME=value
  std::filesystem::path cuda_home = {};            // of NVRTC; empty: that of the tests
  std::chrono::milliseconds patience = kPatience;  // for it to serve
};

/// Started by start(), killed by the destructor with everything that came from it. Used from one thread, but
/// for connect().
class Daemon {
 public:
  explicit Daemon(DaemonOptions options);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Returns when the health service says SERVING and, with a replayed table, an agent offers it. Throws with
  /// the end of the log where that does not happen within the patience. May be called again after the daemon
  /// has ended.
  void start();
  /// Starts it and waits for its end: for a daemon that must refuse to run.
  ExitStatus run_to_end(std::chrono::milliseconds limit);

  DaemonOptions& options() { return options_; }  // for the next start
  std::string address() const;
  Connection connect() const { return Connection(address()); }
  std::filesystem::path store() const;
  std::filesystem::path socket() const;
  pid_t pid() const;
  std::string log() const;

  /// SIGTERM; waits for the end. Absent: it had not ended by then.
  std::optional<ExitStatus> stop(std::chrono::milliseconds limit = std::chrono::milliseconds(10'000));
  /// SIGKILL for the daemon's process alone. Returns at once.
  void kill();
  /// After kill() or stop(): reaps it.
  ExitStatus reap();

 private:
  void spawn();
  void wait_until_serving();
  [[noreturn]] void fail(const std::string& what);

  DaemonOptions options_;
  std::optional<Subprocess> process_;
};

/// The only process under `root` whose command has this word; absent: none (yet).
std::optional<ProcessId> find_process(pid_t root, const std::string& word);

// ---- Messages ----

v1::Problem wire(const Problem& problem);
/// The device that an agent of this daemon offers. Fails the test where there is none.
v1::DeviceClass offered_device(const Connection& connection);
/// Of the tiny kernel, on the offered device.
v1::GetVariantRequest question(const Connection& connection, const Problem& problem);
v1::TuneRequest tune_request(const std::vector<Problem>& problems);
/// Tunes and waits until all jobs have ended. Returns the last event of each, by the order of their end.
std::vector<v1::TuneEvent> tune(const Connection& connection, const std::vector<Problem>& problems);
/// All trials with their samples, replayed ones included.
std::string export_everything(const Connection& connection);

}  // namespace cubind::test
