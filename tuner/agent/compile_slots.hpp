#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

namespace cubind {

/// Limits the compiles that run at a time in all pools that share it: an agent with two NVRTC installations
/// has two pools and one machine. Thread-safe.
class CompileSlots {
 public:
  explicit CompileSlots(unsigned slots) : free_(slots) {}

  /// Waits for a slot. False if `is_withdrawn`, which is asked every few milliseconds, became true first.
  bool take(const std::function<bool()>& is_withdrawn);
  void give();

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  unsigned free_;  // guarded by mutex_
};

}  // namespace cubind
