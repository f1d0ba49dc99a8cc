// The jobs' way through the queue: loaded, opened, queued again after a lease, ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/jobs/failures.hpp"
#include "server/jobs/job_context.hpp"
#include "server/jobs/job_owners.hpp"
#include "server/jobs/lease_order.hpp"
#include "server/jobs/leases.hpp"
#include "server/jobs/open_jobs.hpp"

namespace cubind {

class Error;

/// How the jobs since the daemon's start ended, for the metrics.
struct JobTotals {
  std::map<JobState, std::uint64_t> ended;  // by the state in which a job ended
  std::map<Outcome, std::uint64_t> trials;  // of ended jobs, by outcome
};

/// Used on the job thread. A job that this class ends is removed: its reference is invalid from then on.
class JobQueue {
 public:
  JobQueue(const JobContext& context, OpenJobs& jobs, Leases& leases, JobOwners& owners,
           const LeaseOrder& order, Failures& failures)
      : context_(context),
        jobs_(jobs),
        leases_(leases),
        owners_(owners),
        order_(order),
        failures_(failures) {}

  /// Loads the jobs of a store that only this daemon uses. Leased jobs are queued again, damaged ones fail.
  void load_jobs();
  /// Loads the failures for lack of memory, which outlive the daemon, and forgets old jobs.
  void load_failures();
  /// Ends jobs whose kernel no longer exists, which would wait forever; forgets old jobs.
  void tick();

  /// Opens a job that is stored.
  OpenJob& open(SharedJob stored, const DeviceClass& device);
  /// Ends the job here and in the store. If another daemon has changed the job, it is lost instead.
  void end(OpenJob& job, JobState state, std::string error, RecordPtr record = nullptr);
  void fail(OpenJob& job, std::string error) { end(job, v1::Job::FAILED, std::move(error)); }
  /// Removes a job that has ended, and sends its last event.
  void remove(OpenJob& job, RecordPtr record);

  // Each of these ends the job's lease.
  /// Queues the job again for this daemon's agents. This does not count as an interruption.
  void put_back_here(OpenJob& job);
  /// Queues the job again for all daemons' agents. This does not count as an interruption.
  void put_back(OpenJob& job, JobState state = v1::Job::QUEUED);
  /// Puts back a job that its agent hands back.
  void hand_back(OpenJob& job, bool agent_leaves, const std::string& why);
  /// Puts the job back for a pause; after too many interruptions in a row the job fails.
  void interrupt(OpenJob& job, const std::string& reason);
  /// Takes the job from an agent whose reports do not fit or are missing, or that no longer offers the GPU.
  /// Other agents come first now.
  void take_back(OpenJob& job, const std::string& reason);
  /// Retries transient store errors by queuing the job again, without a limit; any other error ends the job.
  void give_up(OpenJob& job, const Error& error);

  /// The series of the trials that this job shares with others; a retune begins the next one.
  std::uint32_t next_series(StoreReader& reader, const JobRow& row) const;
  /// Delays the job's next grant by at least a second.
  void try_later(OpenJob& job) const;
  /// Whether the error is transient: a full or read-only store may accept the same write later.
  static bool is_transient(const Error& error);

  /// No job is opened for a caller or leased any more.
  void drain() { draining_ = true; }
  bool draining() const { return draining_; }
  std::uint32_t running() const;
  std::uint32_t queued() const { return static_cast<std::uint32_t>(jobs_.all().size()) - running(); }
  const JobTotals& totals() const { return totals_; }

 private:
  /// Ends those open jobs of the store that no agent can continue.
  void fail_damaged_jobs();
  void fail_before_loaded(JobRow row, std::string error);
  /// Deletes old ended jobs, so that the store keeps a limited number.
  void forget_old_jobs();
  void end_jobs_without_kernel();
  /// Puts back a job whose GPU is in use. Other jobs of the class wait too.
  void wait_for_idle_gpu(OpenJob& job);
  ToolchainNeed needs_of(const JobRow& row) const;

  const JobContext& context_;
  OpenJobs& jobs_;
  Leases& leases_;
  JobOwners& owners_;
  const LeaseOrder& order_;
  Failures& failures_;
  JobTotals totals_;
  std::uint32_t ended_since_ = 0;  // jobs that have ended since old ones were forgotten
  std::chrono::steady_clock::time_point next_look_for_kernels_{};
  bool draining_ = false;
};

}  // namespace cubind
