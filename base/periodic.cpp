#include "base/periodic.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

namespace cubind {

std::jthread every(std::chrono::milliseconds period, std::function<bool()> step) {
  return std::jthread([period, step = std::move(step)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    do {
      stopped.wait_for(lock, stop, period, [] { return false; });
    } while (!stop.stop_requested() && step());
  });
}

}  // namespace cubind
