#pragma once

#include <chrono>
#include <mutex>

#include "base/clock.hpp"

namespace cubind::test {

/// Stands still until told otherwise. Starts at 2026-01-01T00:00:00Z and at a steady time far from zero.
class ManualClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point steady_now() const override {
    const std::lock_guard lock(mutex_);
    return steady_;
  }
  std::chrono::system_clock::time_point wall_now() const override {
    const std::lock_guard lock(mutex_);
    return wall_;
  }

  /// Moves both clocks forward.
  void advance(std::chrono::nanoseconds duration) {
    const std::lock_guard lock(mutex_);
    steady_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(duration);
    wall_ += std::chrono::duration_cast<std::chrono::system_clock::duration>(duration);
  }

 private:
  mutable std::mutex mutex_;
  /// Guarded by mutex_.
  std::chrono::steady_clock::time_point steady_{std::chrono::hours(1000)};
  std::chrono::system_clock::time_point wall_{std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)};
};

}  // namespace cubind::test
