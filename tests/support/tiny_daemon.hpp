// A daemon with the tiny kernel, its replayed table and a faults file, in a temporary folder.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/tiny_kernel.hpp"

namespace cubind::test {

struct TinyDaemonOptions {
  std::vector<Problem> problems = {tiny_problem(2)};  // of the table
  std::function<void(Table&)> edit_table = {};        // before it is written
  std::string faults = "[]";                          // the array of the faults file
  std::vector<std::uint32_t> users = {};              // of the device: see ReplayFaults
  std::uint64_t free_memory = 0;                      // of the device; 0: enough for everything
  int pace_us = 0;
  bool hold = false;  // until let_go()
  std::vector<std::string> arguments = {};
  std::string failpoints = {};
  std::vector<std::string> environment = {};
  std::chrono::milliseconds patience = kPatience;
};

class TinyDaemon {
 public:
  /// Writes the files and starts the daemon, unless `start` is false.
  explicit TinyDaemon(TinyDaemonOptions options = {}, bool start = true);

  Daemon& operator*() { return daemon_; }
  Daemon* operator->() { return &daemon_; }

  std::filesystem::path folder() const { return folder_.path(); }
  std::filesystem::path kernels() const { return folder() / "kernels"; }
  /// A check of the kernel as its files are now, for the problem of two rows.
  v1::CheckKernelRequest check_request() const;
  /// One line for each measured block: trial key, stage, first sample, samples, pid of the worker.
  std::vector<std::string> measured_blocks() const;
  /// What this daemon has tuned, as if it had been measured on the GPU whose name its table bears.
  Table as_of_a_real_gpu() const;
  void let_go();
  /// From the next device worker on, until let_go().
  void hold();
  void write_faults(const std::string& faults);
  /// From now on.
  void set_free_memory(std::uint64_t bytes);

 private:
  TinyDaemonOptions options_;
  TempDir folder_;
  Daemon daemon_;
};

}  // namespace cubind::test
