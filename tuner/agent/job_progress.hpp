#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "tuner/agent/job_channel.hpp"

namespace cubind {

/// The reports to the daemon while a job runs, and the time that the job spends at each of its stages. A
/// phase is a stage that callers are told of (v1::Job::phase). A report goes out at once where the state
/// changes or a phase is come to for the first time, else fifty times a second at most for a change of the
/// phase (each configuration goes through three) and ten times for the rest. Used from the job's thread.
class JobProgress {
 public:
  JobProgress(JobChannel& channel, const Clock& clock);

  /// compiling, verifying, screening, finalists, commit: a stage() that is reported.
  void phase(std::string_view phase);
  /// The time from now on is spent at this stage (see StageTime). WAITING_FOR_IDLE_GPU is one by itself.
  void stage(std::string_view stage);
  void state(v1::Job::State state);
  void total(std::uint32_t configurations);
  void done(std::uint32_t configurations);
  void nvrtc_calls(std::uint32_t calls);
  void best(double time_us);
  void send();
  /// The stages in the order in which they were first come to.
  void add_stages(v1::JobResult& result);

 private:
  void send_if_due(std::chrono::milliseconds since_last);

  JobChannel& channel_;
  const Clock& clock_;
  v1::Progress progress_;
  std::chrono::steady_clock::time_point sent_{};
  std::set<std::string, std::less<>> told_phases_;
  std::vector<std::pair<std::string, std::chrono::duration<double, std::milli>>> stages_;
  std::string stage_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace cubind
