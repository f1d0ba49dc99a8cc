// The persisted job queue: single-flight by key, leases with fencing numbers, waiters, results.
//
// Thread rule: every function is called on one thread, the job thread (Strand). The clock is a parameter, so
// that tests can expire leases without waiting. A call writes to disk through the store before it returns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/jobs/dispatcher.hpp"
#include "server/jobs/outcomes.hpp"
#include "server/jobs/pending_checks.hpp"

namespace cubind {

/// Calls the parts of the queue in order; their headers say what each does.
class Scheduler {
 public:
  Scheduler(Store& store, Index& index, KernelLibrary& kernels, const Clock& clock,
            SchedulerOptions options = {});
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Loads the open jobs of the store. Leased jobs are queued again, damaged ones fail. Provisional records
  /// are measured again; therefore load the index first.
  void load();

  // ---- Asking ----

  /// Returns for each order the open job for its question, or a new one. A request for a retune, for a larger
  /// budget, or for exactly the problem of a job for a bucket changes the open job accordingly. If the job
  /// has already ended (because it could not be granted), returns its last event. Throws as Submissions does;
  /// then the jobs of earlier orders stay.
  std::vector<JobEvent> submit_tunes(const std::vector<TuneOrder>& orders, bool retune);
  /// `caller`: see TuneOrder.
  JobEvent submit_compile(const CompileOrder& order, const std::string& caller = {});
  std::optional<JobEvent> find_open(const RecordQuestion& question) const;
  std::optional<JobEvent> find(const std::string& id) const;  // open jobs
  std::vector<JobEvent> open_jobs() const;

  /// The error of the key's last failure while it counts (see Failures). A miss does not start such a job
  /// again; a Tune does.
  std::optional<std::string> failed_lately(const Digest& key, bool for_bucket = false) const;

  /// Registers a watcher, which is called for every later change; returns 0 if the job is not open.
  std::uint64_t watch(const std::string& job_id, Watcher watcher);
  void unwatch(std::uint64_t watch_id) { jobs_.unwatch(watch_id); }
  /// Notes that a caller waits for the open job, so that its compiles run at full priority. Does nothing if
  /// the job is not open.
  void await(const std::string& job_id);

  /// A caller lends its GPU until end_lend(). Jobs that wait for this GPU or another one to be idle may then
  /// measure on it.
  std::uint64_t lend(LentGpu lent);
  /// For 0, does nothing; then any thread may call it.
  void end_lend(std::uint64_t lend) { lend != 0 ? lent_.remove(lend) : void(); }
  const LentGpus& lent() const { return lent_; }

  /// Throws NotFound, or FailedPrecondition if the job has ended.
  JobEvent cancel(const std::string& id);

  // ---- Agents ----

  AgentRoster& agents() { return agents_; }
  /// `link` must stay valid until agent_left().
  std::uint64_t agent_joined(AgentProfile profile, AgentLink& link);
  void agent_devices(std::uint64_t agent, std::vector<OfferedDevice> devices);
  /// `reason`: what its jobs tell where they are interrupted too often.
  void agent_left(std::uint64_t agent, const std::string& reason = "the agent left");
  /// The agent hands back its leases and gets no more. Their jobs are granted again at once.
  void agent_leaves(std::uint64_t agent);
  /// The agent has sent a message that no agent of this build sends: for the jobs that it holds, prefer other
  /// agents.
  void avoid(std::uint64_t agent);
  /// Whether an agent of this daemon or of another one measures on such a GPU, or is expected soon.
  bool may_find_device(const Digest& device_class) const;

  /// Each of the next four functions renews the lease. They return false if the lease is over or the fence is
  /// stale: then the agent is asked to drop the job, and nothing is stored.
  bool heartbeat(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence);
  bool progress(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                const v1::Progress& progress);
  /// If this returns true, the batch is stored, in one transaction.
  bool store_batch(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence, WorkBatch batch);
  bool finish(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence, WorkResult result);

  /// Compiles a check on an agent that can. Calls `done` once; if no agent can compile it, `error` has the
  /// text of Unavailable and the result is empty. Returns the check's id.
  std::string check(CheckOrder order, const std::string& caller, PendingChecks::Done done);
  PendingChecks& checks() { return checks_; }

  /// Reads the changes of other daemons on the same database and grants jobs. Throws the store's errors. Does
  /// nothing if only one daemon uses the store.
  void catch_up();
  PeerChanges& peers() { return peers_; }

  /// Expires leases and grants jobs. Call it every few hundred milliseconds.
  void tick();

  /// Grants no more leases and asks agents to hand back theirs. Calls that wait for jobs or checks end.
  void drain();

  const JobQueue& queue() const { return queue_; }
  const Leases& leases() const { return leases_; }
  Outcomes& outcomes() { return outcomes_; }

 private:
  void agents_changed();
  /// Dispatches, then returns the state of these jobs; for a job that has ended in between, its last event.
  std::vector<JobEvent> dispatched(const std::vector<std::string>& ids);
  /// Renews the lease and returns its job; null if the lease is over or the fence is stale.
  OpenJob* leased_job(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence);

  const JobContext context_;
  AgentRoster agents_;
  OpenJobs jobs_;
  Leases leases_;
  JobOwners owners_;
  LeaseOrder order_;
  LentGpus lent_;
  Failures failures_;
  Placement placement_;
  JobQueue queue_;
  PeerChanges peers_;
  Submissions submissions_;
  Dispatcher dispatcher_;
  Outcomes outcomes_;
  PendingChecks checks_;
};

}  // namespace cubind
