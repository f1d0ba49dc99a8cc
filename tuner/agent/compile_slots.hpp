#pragma once

#include <mutex>

namespace cubind {

/// Who waits for a compile, the more urgent ones last. Checks and questions each have a slot that those
/// before them cannot take: a source that keeps its compiler busy until the deadline does not keep those
/// waiting who are more in a hurry. Compiles ahead leave one of several slots to the job that runs.
enum class CompilePriority {
  Ahead,      // a configuration of the job that comes next
  Tuning,     // a configuration, ahead of the device
  Reference,  // a tuning job cannot go on without it
  Check,      // kernels check
  Question,   // a caller waits for the cubin
};

/// Limits the compiles that run at a time in all pools that share it: an agent with two NVRTC installations
/// has two pools and one machine. Thread-safe.
class CompileSlots {
 public:
  /// Beyond the `slots` of tuning jobs.
  static constexpr unsigned kReserved = 2;

  explicit CompileSlots(unsigned slots) : slots_(slots) {}

  /// False: all slots of that priority are taken.
  bool try_take(CompilePriority priority);
  void give();

 private:
  const unsigned slots_;
  std::mutex mutex_;
  unsigned taken_ = 0;  // guarded by mutex_
};

}  // namespace cubind
