// A daemon that ends with its last user: users hold a shared lock (flock) on a file as long as they need it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
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

 private:
  const UniqueFd file_;
  const std::jthread thread_;
};

}  // namespace cubind
