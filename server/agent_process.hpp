// The agent of this machine: started, watched, started again.
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

struct AgentProcessOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;          // without --address
  std::string address;                         // unix:///...
  std::chrono::milliseconds first_delay{250};  // doubled after every quick end, at most 30 s
};

/// Owns a thread that starts the agent and lives as long as it: the agent dies with the thread that made it,
/// so with this process.
class AgentProcess {
 public:
  /// `starting` is called from the thread before every start.
  AgentProcess(AgentProcessOptions options, std::function<void()> starting);
  /// Kills the agent if it still runs.
  ~AgentProcess();
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;

  /// SIGTERM; it is not started again.
  void stop();

 private:
  void run();
  /// One life of the agent; returns when it has ended or is to be killed.
  void live();

  const AgentProcessOptions options_;
  const std::function<void()> starting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  bool killing_ = false;   // guarded by mutex_
  std::thread thread_;
};

}  // namespace cubind
