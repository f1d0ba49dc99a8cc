#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "tuner/agent/lease/job_channel.hpp"

namespace cubind {

/// The reports to the daemon while a job runs, and the time that the job spends at each of its stages. A
/// report is sent at once if the state changes or a stage is reached for the first time. Otherwise a change
/// of stage (each configuration goes through four) is sent at most fifty times a second, or it waits in the
/// channel, since the stage may last; everything else is sent ten times. Used from the job's thread.
class JobProgress {
 public:
  JobProgress(JobChannel& channel, const Clock& clock);

  /// The time from now on is spent at this stage (see StageTime), which callers see (v1::Job::stage):
  /// compiling, verifying, screening, finalists or commit.
  void stage(std::string_view stage);
  /// A stage that is timed without being the job's: opening or choosing. waits() times waiting_for_idle_gpu.
  void timed_stage(std::string_view stage);
  void runs();
  /// Waits until no other process uses the GPU. `because`: who does, `is_lent`: although a caller lends it.
  void waits(const std::string& because, bool is_lent);
  void total(std::uint32_t configurations);
  void done(std::uint32_t configurations);
  void nvrtc_calls(std::uint32_t calls);
  void best(double time_us);
  void send();
  /// The stages in the order in which they were first come to, each with its time so far.
  google::protobuf::RepeatedPtrField<v1::StageTime> stages();

 private:
  void switch_to(std::string_view stage);
  void begin_state(v1::Job::State state);
  bool is_due(std::chrono::milliseconds since_last) const;
  void send_if_due(std::chrono::milliseconds since_last);
  void note_times();

  JobChannel& channel_;
  const Clock& clock_;
  v1::Progress progress_;
  std::chrono::steady_clock::time_point sent_{};
  std::set<std::string, std::less<>> reported_stages_;
  std::vector<std::pair<std::string, std::chrono::duration<double, std::milli>>> stages_;
  std::string stage_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace cubind
