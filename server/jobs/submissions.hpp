// Jobs that callers ask for: new ones, and what a further request changes in an open one.
#pragma once

#include <string>

#include "server/jobs/agent_roster.hpp"
#include "server/jobs/job_queue.hpp"
#include "server/jobs/orders.hpp"
#include "server/jobs/peer_changes.hpp"

namespace cubind {

/// Used on the job thread. Each function that submits returns the id of the open job with the order's key, or
/// of a new one that is not placed yet. If another daemon has just done the job, it has ended. Each throws
/// ResourceExhausted if the queue is full or has too many jobs of the caller, Unavailable while draining, and
/// the store's error if the job cannot be persisted.
class Submissions {
 public:
  Submissions(const JobContext& context, const AgentRoster& agents, OpenJobs& jobs, JobOwners& owners,
              JobQueue& queue, PeerChanges& peers)
      : context_(context), agents_(agents), jobs_(jobs), owners_(owners), queue_(queue), peers_(peers) {}

  /// A retune turns an open job into a retune.
  std::string tune(const TuneOrder& order, bool retune);
  std::string compile(const CompileOrder& order, const std::string& caller);
  /// If the question has a provisional record, submits the measurement that replaces it.
  void measure_again(const RecordQuestion& question, const DeviceClass& device);
  /// The same for every record of the index.
  void measure_all_again();

 private:
  std::string submit(const JobRow& row, const DeviceClass& device, const std::string& caller);
  /// Like submit(), but throws Aborted if another daemon has changed the job since this one read it.
  std::string try_to_submit(JobRow row, const DeviceClass& device, const std::string& caller);
  void refuse_more_jobs() const;
  /// Stores the row with its series. If another daemon already has a job with the key, returns that one: an
  /// open job, or a done one whose result this daemon has not read yet.
  SharedJob store_new(JobRow row, const DeviceClass& device);
  /// Handles another request for an open job, perhaps with other options.
  void ask_again(OpenJob& job, const JobRow& asked);
  /// Restarts the job as `asked`. Its measurements so far count only if it continues the same search.
  void restart(OpenJob& job, const JobRow& asked);
  /// Whether agents offer the device class only under other power limits than that of the latest measurement.
  /// Then its samples, although their keys still match, say nothing about the current clocks.
  bool power_limit_has_changed(const RecordQuestion& question) const;

  const JobContext& context_;
  const AgentRoster& agents_;
  OpenJobs& jobs_;
  JobOwners& owners_;
  JobQueue& queue_;
  PeerChanges& peers_;
};

}  // namespace cubind
