// Whether the daemon still accepts connections on its own socket: a gRPC listener that has once run out of
// descriptors never accepts again (CVE-2023-4785 in the version of Debian 12), and connected clients do not
// notice.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

namespace cubind {

struct PortWatchOptions {
  std::filesystem::path socket;
  std::chrono::milliseconds period{10'000};
  std::chrono::milliseconds patience{10'000};  // for the server's first bytes
  int failures = 3;                            // in a row
};

/// Connects now and then, from a thread of its own.
class PortWatch {
 public:
  /// `deaf` is called once, from the thread, when the server has left that many connections in a row without
  /// a word although descriptors were free.
  PortWatch(PortWatchOptions options, std::function<void()> deaf);
  ~PortWatch();
  PortWatch(const PortWatch&) = delete;
  PortWatch& operator=(const PortWatch&) = delete;

 private:
  void run();

  const PortWatchOptions options_;
  const std::function<void()> deaf_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace cubind
