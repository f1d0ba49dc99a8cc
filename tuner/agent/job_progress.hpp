#pragma once

#include <chrono>
#include <string_view>

#include "tuner/agent/job_channel.hpp"

namespace cubind {

/// The reports to the daemon while a job runs: at once if the phase or the state changes, else ten times a
/// second at most. Used from the job's thread.
class JobProgress {
 public:
  explicit JobProgress(JobChannel& channel);

  /// compiling, verifying, screening, finalists, commit
  void phase(std::string_view phase);
  void state(v1::Job::State state);
  void total(std::uint32_t configurations);
  void done(std::uint32_t configurations);
  void nvrtc_calls(std::uint32_t calls);
  void best(double time_us);
  void send();

 private:
  void send_if_due();

  JobChannel& channel_;
  v1::Progress progress_;
  std::chrono::steady_clock::time_point sent_{};
};

}  // namespace cubind
