#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace cubind {

/// Tells a running job from outside that it is over. All members may be called from any thread.
class JobStop {
 public:
  enum class Kind : std::uint8_t {
    None,
    HandBack,  // drain, SIGTERM: the unfinished job goes back with JobResult INTERRUPTED
    Drop,      // the lease is lost: nothing more is sent
  };

  /// Drop replaces HandBack, never the other way. Runs the hooks, in the calling thread.
  void request(Kind kind);
  Kind kind() const;
  bool requested() const { return kind() != Kind::None; }

  /// The agent ends: the job is handed back when the trial under way has ended. Wakes the job's thread.
  void end_after_trial();

  /// Throws Error: Cancelled to hand back, Aborted to drop.
  void check() const;
  /// The same between two trials, where a job also ends that is to end soon.
  void check_between_trials() const;
  /// Sleeps; true when a stop was requested before the time was over. wake() ends it too.
  bool wait_for(std::chrono::milliseconds time);
  /// Ends the sleep of the job's thread, or else its next one: what it waits for has changed.
  void wake();

  /// While this object lives, `hook` runs when a stop is requested (at once if it was before): it ends what
  /// the job's thread waits for. The hook must not wait for the job.
  class Hook {
   public:
    Hook(JobStop& stop, std::function<void()> hook);
    ~Hook();
    Hook(const Hook&) = delete;
    Hook& operator=(const Hook&) = delete;

   private:
    JobStop& stop_;
    std::uint64_t id_ = 0;
  };

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Kind kind_ = Kind::None;                                // guarded by mutex_
  bool woken_ = false;                                    // guarded by mutex_
  bool ends_after_trial_ = false;                         // guarded by mutex_
  std::map<std::uint64_t, std::function<void()>> hooks_;  // guarded by mutex_, which is held while they run
  std::uint64_t next_id_ = 1;                             // guarded by mutex_
};

}  // namespace cubind
