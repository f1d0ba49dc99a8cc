#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace cubind::test {

/// Asks until the answer is yes. False: it never was.
inline bool eventually(const std::function<bool()>& question,
                       std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!question()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace cubind::test
