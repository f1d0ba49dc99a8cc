// The persisted job queue: single-flight by key, leases with fencing numbers, waiters, results.
//
// Thread rule: every function is called on one thread, the job thread (Strand). The clock is a parameter, so
// that tests can expire leases without waiting. A call writes to disk through the store before it returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "server/jobs/agent.hpp"
#include "server/jobs/failures.hpp"
#include "server/jobs/job_event.hpp"
#include "server/jobs/job_owners.hpp"
#include "server/jobs/job_totals.hpp"
#include "server/jobs/lease_order.hpp"
#include "server/jobs/lent_gpus.hpp"
#include "server/jobs/open_jobs.hpp"
#include "server/jobs/orders.hpp"
#include "server/jobs/pending_checks.hpp"
#include "server/jobs/placement.hpp"
#include "server/lookup/index.hpp"

namespace cubind {

class CallerLimits;
class Error;
class KernelLibrary;
class Store;
class StoreReader;
struct KernelEntry;

struct SchedulerOptions {
  std::chrono::milliseconds lease{15'000};
  /// A leased job that stores nothing new for this time goes to another agent. An agent may wait longer for
  /// an idle GPU if no other GPU is free.
  std::chrono::minutes longest_without_result{15};
  std::size_t queue_limit = 10'000;           // open jobs
  std::uint32_t interruption_limit = 10;      // in a row, with nothing stored in between, before a job fails
  std::uint32_t refusal_limit = 5;            // results that do not fit the job before it fails
  std::chrono::milliseconds retry_step{250};  // doubles with each interruption in a row, up to 30 s
  std::chrono::milliseconds idle_retry{
      10'000};  // how often a GPU in use is checked again for provisional records
  std::chrono::minutes failure_pause{10};
  std::uint32_t compile_leases = 4;  // at a time, per agent
  std::chrono::days job_memory{30};  // ended jobs older than this are forgotten
  std::uint32_t forget_after = 500;  // old jobs are forgotten each time that so many have ended
  CallerLimits* limits = nullptr;    // null: none
  /// Whether the kernel came from a user other than the daemon's. Empty: no kernel did.
  std::function<bool(const std::string& kernel)> is_foreign = {};
};

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

  /// Returns the open job for the question, or a new one. A request for a retune, for a larger budget, or for
  /// exactly the problem of a job for a bucket changes the open job accordingly. If the job has already ended
  /// (because it could not be granted), returns its last event. Throws ResourceExhausted if the queue is full
  /// or has too many jobs of the caller, Unavailable while draining, and the store's error if the job cannot
  /// be persisted.
  JobEvent submit_tune(const RecordQuestion& question, const DeviceClass& device, bool retune);
  /// Submits many jobs, in their order. If one throws, those before it stay.
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
  void unwatch(std::uint64_t watch_id);
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
  bool has_agent(const AgentProfile& like) const;
  /// Whether an agent of this daemon or of another one measures on such a GPU, or is expected soon.
  bool may_find_device(const Digest& device_class) const;
  /// Until `deadline` a job without a device is not reported as no_device, because an agent is expected.
  void expect_agent_until(std::chrono::steady_clock::time_point deadline);
  bool agent_expected() const;

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
  /// Drops checks whose callers have left: an agent stops compiling them at once, and `done` is not called.
  void drop_checks(const std::vector<std::string>& ids);
  /// Throws InvalidArgument if another agent compiles the check.
  void check_done(std::uint64_t agent, const std::string& id, const v1::CheckResult& result);

  /// Reads the changes of other daemons on the same database, first of the index, then of the jobs. Throws
  /// the store's errors. Does nothing if only one daemon uses the store.
  void catch_up();
  /// The time of the last catch_up().
  std::optional<std::chrono::steady_clock::time_point> caught_up_at() const { return caught_up_at_; }

  /// Expires leases and grants jobs. Call it every few hundred milliseconds.
  void tick();

  /// Grants no more leases and asks agents to hand back theirs; idle() returns true once all have. Calls that
  /// wait for jobs or checks end.
  void drain();
  bool idle() const;
  bool draining() const;

  std::vector<AgentProfile> agents() const;
  /// The state of a GPU: "idle", "tuning" or "waiting_for_idle_gpu".
  std::string device_state(const std::string& uuid) const;
  /// The GPU's state while its last samples were taken; empty: not known.
  v1::Conditions device_conditions(const std::string& uuid) const;
  const JobTotals& totals() const { return totals_; }
  std::uint32_t queued() const;
  std::uint32_t running() const;

  /// `listener` is called on the job thread for every stored artifact.
  void on_artifact(std::function<void(const ArtifactRow&)> listener);
  /// `listener` is called after another daemon has ended a job, which may have stored artifacts.
  void on_job_ended_elsewhere(std::function<void()> listener);
  /// `listener` is called after a change of the agents or their devices.
  void on_agents(std::function<void()> listener);

 private:
  // ---- scheduler_submits.cpp ----
  /// Returns the id of the open job with the row's key, or of a new one that is not placed yet. A retune
  /// turns an open job into a retune. If another daemon has just done the job, it has ended.
  std::string enqueue(const JobRow& row, const DeviceClass& device, const std::string& caller);
  /// Like enqueue(), but throws Aborted if another daemon has changed the job since this one read it.
  std::string try_to_enqueue(JobRow row, const DeviceClass& device, const std::string& caller);
  void refuse_more_jobs() const;
  /// Stores the row with its series. If another daemon already has a job with the key, returns that one: an
  /// open job, or a done one whose result this daemon has not read yet.
  SharedJob store_new(JobRow row, const DeviceClass& device);
  /// The last series of the trials that jobs for this question share with other jobs.
  std::uint32_t last_series(StoreReader& reader, const RecordQuestion& question) const;
  ToolchainNeed needs_of(const JobRow& row) const;
  /// Handles another request for an open job, perhaps with other options.
  void ask_again(OpenJob& job, const JobRow& asked);
  /// Restarts the job as `asked`. Its measurements so far count only if it continues the same search.
  void begin_anew(OpenJob& job, const JobRow& asked);
  /// Dispatches, then returns the state of these jobs; for a job that has ended in between, its last event.
  std::vector<JobEvent> dispatched(const std::vector<std::string>& ids);

  // ---- scheduler.cpp ----
  void await(OpenJob& job);
  /// Stores an open job's row and its new owner. Throws Aborted if another daemon has changed the job.
  void persist(OpenJob& job, const JobRow& row, const std::string& owner);
  /// Deletes old ended jobs, so that the store keeps a limited number.
  void forget_old_jobs();
  /// Loads the jobs of a store that only this daemon uses.
  void load_jobs();
  /// Ends those open jobs of the store that no agent can continue.
  void fail_damaged_jobs();
  void fail_before_loaded(JobRow row, std::string error);
  /// Loads the failures for lack of memory, which outlive the daemon.
  void load_failures();
  /// Whether the error is transient: a full or read-only store may accept the same write later.
  static bool is_passing(const Error& error);
  /// Ends the job in the store, notifies its watchers and removes it.
  void end(OpenJob& job, JobState state, std::string error, RecordPtr record);
  /// Returns false if another daemon has changed the job, which then has not ended.
  bool store_end(OpenJob& job);
  /// Whether agents offer the device class only under other power limits than that of the latest measurement.
  /// Then its samples, although their keys still match, say nothing about the current clocks.
  bool power_limit_has_changed(const RecordQuestion& question) const;

  // ---- scheduler_leases.cpp ----
  void agents_changed();
  /// Leases the jobs that can be leased now, by rank and age.
  void dispatch();
  void assign(OpenJob& job);
  void mark_without_device(OpenJob& job);
  void begin_checks(std::uint64_t agent);
  void try_to_grant(OpenJob& job, const JobTarget& target);
  void grant(OpenJob& job, const JobTarget& target);
  /// The kernel that the job was submitted for. Throws FailedPrecondition if its interface has changed.
  std::shared_ptr<const KernelEntry> kernel_of(const OpenJob& job);
  /// The lease of a job without the known trials, the lease's id and its terms.
  Lease describe(const OpenJob& job, const JobTarget& target, const KernelEntry& kernel,
                 const IndexSnapshot& index);
  /// Tells the agents which jobs come next on their GPUs, so that they can compile for these ahead of time.
  void announce_next();
  /// Notes whether the agent of a leased job finds its GPU in use although it is lent.
  void note_use_of_lent_gpu(OpenJob& job, bool in_use_lent);
  /// Ends the waits of calls whose lent GPU other processes use for too long.
  void end_vain_waits();
  /// Ends jobs whose kernel no longer exists, which would wait forever.
  void end_jobs_without_kernel();
  /// Renews the lease and returns its job; null if the lease is over or the fence is stale.
  OpenJob* leased_job(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence);

  // ---- scheduler_lease_ends.cpp ----
  /// Queues a leased job again; after too many interruptions in a row the job fails.
  void requeue(OpenJob& job, const std::string& reason);
  /// Queues a leaving agent's job again at once. This does not count as an interruption.
  void hand_on(OpenJob& job);
  /// Handles a job that the agent handed back because the GPU is in use. Other jobs of the class wait too.
  void wait_for_idle_gpu(OpenJob& job);
  /// Takes the job from an agent whose reports do not fit or are missing, or that no longer offers the GPU.
  /// Other agents come first now.
  void take_back(OpenJob& job, const std::string& reason);
  void end_lease_at_agent(const OpenJob& job, const std::string& reason);
  /// Ends leases that no message has renewed, or that have stored nothing for too long.
  void expire_leases();
  bool has_stalled(const OpenJob& job) const;
  void end_stalled_leases();

  // ---- scheduler_lends.cpp ----
  /// Moves a leased job that waits for its GPU to be idle to a lent GPU that no other job holds.
  void move_to_a_lent_gpu();

  // ---- scheduler_shared.cpp ----
  void take_changes();
  void take_change(SharedJob& changed, const std::map<Digest, DeviceClass>& classes);
  void adopt(OpenJob& job, SharedJob& changed);
  void add_of_another(SharedJob& changed, const std::map<Digest, DeviceClass>& classes);
  /// Looks up the job's device class. If the class is damaged in the store, only its digest is known until an
  /// agent offers it.
  void find_device(OpenJob& job) const;
  /// Ends the jobs here that are no longer among the database's open ones.
  void end_missing(const std::vector<SharedJob>& open);
  void end_elsewhere(OpenJob& job, JobRow ended);
  JobEvent ended_elsewhere(const std::string& id);
  /// The record that another daemon has stored for the job.
  RecordPtr record_of(const JobRow& ended) const;
  /// Ends the job's lease; the daemon reads the job's row again before it does anything else with the job.
  void lose(OpenJob& job, const std::string& why);
  /// Lets other daemons take the job, which no longer has a lease. If the store takes no writes, the job
  /// stays with this daemon.
  void release(OpenJob& job);

  // ---- scheduler_results.cpp ----
  /// Stores the job's state, so that other daemons can report it to their callers. Returns false if one of
  /// them has taken the job.
  bool store_state(OpenJob& job);
  void complete_tune(OpenJob& job, WorkResult& result);
  /// Keeps the earlier search in the record if the job chose among its best and nothing has changed since.
  void keep_search(const OpenJob& job, RecordRow& record) const;
  /// Queues the job again, once, for another GPU with enough room. Returns false if there is no such GPU.
  bool move_to_more_room(OpenJob& job, const WorkResult& result);
  /// Queues the job again for the smaller problem that fits, as found by the agent.
  void measure_smaller(OpenJob& job, const WorkResult& result);
  /// If the question has a provisional record, enqueues the measurement that replaces it.
  void measure_again_when_idle(const RecordQuestion& question, const DeviceClass& device);
  /// Delays the job's next grant by at least a second.
  void try_later(OpenJob& job);
  /// Rejects an agent's report that does not fit the job: nothing is stored, and other agents come first from
  /// now on.
  void refuse(OpenJob& job, const Error& error);
  /// Retries transient store errors by queuing the job again, without a limit; any other error ends the job.
  void give_up(OpenJob& job, const Error& error);

  Store& store_;
  Index& index_;
  KernelLibrary& kernels_;
  const Clock& clock_;
  const SchedulerOptions options_;
  const JobOwners owners_;

  OpenJobs jobs_;
  LeaseOrder order_;
  JoinedAgents agents_;
  LentGpus lent_;
  Failures failures_;
  Placement placement_;
  PendingChecks checks_;
  std::map<std::string, v1::Conditions> conditions_;  // by GPU
  std::vector<std::function<void(const ArtifactRow&)>> artifact_listeners_;
  std::vector<std::function<void()>> agent_listeners_, elsewhere_listeners_;
  std::uint64_t last_agent_ = 0;
  std::uint32_t ended_since_ = 0;  // jobs that have ended since old ones were forgotten
  JobTotals totals_;
  std::chrono::steady_clock::time_point agent_expected_until_{}, next_look_for_kernels_{};
  bool draining_ = false;
  bool dispatching_ = false;
  std::uint64_t last_change_ = 0;  // the last change of jobs that was read
  std::uint64_t interruptions_ = 0;
  bool reads_all_ = true;  // at the next catch_up()
  std::optional<std::chrono::steady_clock::time_point> caught_up_at_;
};

}  // namespace cubind
