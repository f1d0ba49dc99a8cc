#pragma once

#include <mutex>

namespace cubind {

/// What waits for a compile, the more urgent last. Checks and questions each have a slot that those
/// before them cannot take: a source that keeps its compiler busy until the deadline does not keep those
/// waiting who are more in a hurry. Compiles ahead leave one of several slots to the job that runs.
enum class CompilePriority {
  Background,  // a job that no caller waits for
  Ahead,       // a configuration of the job that comes next
  Tuning,      // a configuration, ahead of the device
  Reference,   // a tuning job cannot go on without it
  Check,       // kernels check
  Question,    // a caller waits for the cubin
};

/// Limits the compiles that run at a time in all services that share it: an agent with two NVRTC
/// installations has two services and one machine. Those in the background begin only where a slot is free,
/// have a quarter of the slots, at least one, and take none from the others. Thread-safe.
class CompileSlots {
 public:
  /// `slots`: of tuning jobs.
  explicit CompileSlots(unsigned slots) : slots_(slots) {}

  /// How many can be taken, but for compiles in the background, and by these.
  unsigned most() const;
  unsigned most_in_background() const;

  /// False: all slots of that priority are taken.
  bool try_take(CompilePriority priority);
  /// One that was taken with that priority.
  void give(CompilePriority priority);

 private:
  const unsigned slots_;
  std::mutex mutex_;
  // Guarded by mutex_.
  unsigned taken_ = 0;  // but for those in the background
  unsigned in_background_ = 0;
};

}  // namespace cubind
