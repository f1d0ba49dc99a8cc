// What other daemons on the same database change: the open jobs of all are open here too, and each daemon
// leases what its agents can take.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/jobs/agent_roster.hpp"
#include "server/jobs/job_queue.hpp"

namespace cubind {

/// Used on the job thread.
class PeerChanges {
 public:
  PeerChanges(const JobContext& context, const AgentRoster& agents, OpenJobs& jobs, JobOwners& owners,
              JobQueue& queue)
      : context_(context), agents_(agents), jobs_(jobs), owners_(owners), queue_(queue) {}

  /// Reads what has changed, first of the index, then of the jobs. Throws the store's errors. Returns false,
  /// and does nothing, if only one daemon uses the store.
  bool take();
  /// The time of the last take().
  std::optional<std::chrono::steady_clock::time_point> taken_at() const { return taken_at_; }
  /// The last change of jobs that was read.
  std::uint64_t last_change() const { return last_change_; }

  /// Looks up the device classes that are damaged in the store, of which only the digest is known until an
  /// agent offers them.
  void find_devices();
  /// The last event of a job that is not open.
  JobEvent ended(const std::string& id) const;
  /// `listener` is called after another daemon has ended a job, which may have stored artifacts.
  void on_job_ended(std::function<void()> listener) { listeners_.push_back(std::move(listener)); }

 private:
  void take(SharedJob& changed, const std::map<Digest, DeviceClass>& classes);
  void open(SharedJob& changed, const std::map<Digest, DeviceClass>& classes);
  void adopt(OpenJob& job, SharedJob& changed);
  /// Ends the jobs here that are no longer among the database's open ones.
  void end_missing(const std::vector<SharedJob>& stored);
  void end(OpenJob& job, JobRow ended);
  /// The record that another daemon has stored for the job.
  RecordPtr record_of(const JobRow& ended) const;

  const JobContext& context_;
  const AgentRoster& agents_;
  OpenJobs& jobs_;
  JobOwners& owners_;
  JobQueue& queue_;
  std::vector<std::function<void()>> listeners_;
  std::uint64_t last_change_ = 0;
  std::uint64_t interruptions_ = 0;
  bool reads_all_ = true;  // at the next take()
  std::optional<std::chrono::steady_clock::time_point> taken_at_;
};

}  // namespace cubind
