// A daemon that ends with its last user: users hold a shared lock (flock) on a file as long as they need it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "base/unique_fd.hpp"

namespace cubind {

/// Tries to lock the file for itself now and then, from a thread of its own. The kernel gives up the lock of
/// a user that was killed, so a user need not release it.
class UserWatch {
 public:
  /// `unused` is called once, from the thread, when no process locks the file any more. From then on
  /// this holds it, so that a new user waits for the end of this process. Throws Error if the file cannot be
  /// opened.
  UserWatch(const std::filesystem::path& file, std::chrono::milliseconds period,
            std::function<void()> unused);
  ~UserWatch();
  UserWatch(const UserWatch&) = delete;
  UserWatch& operator=(const UserWatch&) = delete;

 private:
  void run();

  const UniqueFd file_;
  const std::chrono::milliseconds period_;
  const std::function<void()> unused_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace cubind
