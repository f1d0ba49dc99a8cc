// A program that the daemon runs next to itself, its agent or its pages: started, watched, started again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace cubind {

struct OwnProcessOptions {
  std::string name = "local agent";  // for the log
  std::filesystem::path program;
  std::vector<std::string> arguments;          // without --address
  std::string address;                         // unix:///...
  std::chrono::milliseconds first_delay{250};  // doubled after every quick end, at most 30 s
};

/// Owns a thread that starts the program and lives as long as it: the program dies with the thread that made
/// it, so with this process.
class OwnProcess {
 public:
  /// `starting` is called from the thread before every start.
  OwnProcess(OwnProcessOptions options, std::function<void()> starting);
  /// Kills the program if it still runs.
  ~OwnProcess();
  OwnProcess(const OwnProcess&) = delete;
  OwnProcess& operator=(const OwnProcess&) = delete;

  /// SIGTERM; it is not started again.
  void stop();

 private:
  void run();
  /// One life of the program; returns when it has ended or is to be killed.
  void live();

  const OwnProcessOptions options_;
  const std::function<void()> starting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  bool killing_ = false;   // guarded by mutex_
  std::thread thread_;
};

}  // namespace cubind
