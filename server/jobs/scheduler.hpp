// The persisted job queue: single-flight by key, leases with fencing numbers, waiters, results.
//
// Thread rule: none of its own. Everything is called on one thread, the job thread (Strand); the clock is
// handed in, so that leases expire in tests without waiting. Work that reaches the disk is done through the
// store within a call.
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
#include "server/jobs/job_totals.hpp"
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
  /// A leased job that stores nothing new for so long goes to another agent. An agent may wait longer for an
  /// idle GPU, as long as no other one is free.
  std::chrono::minutes longest_without_result{15};
  std::size_t queue_limit = 10'000;       // open jobs
  std::uint32_t interruption_limit = 10;  // in a row, with nothing stored in between: then a job has failed
  std::uint32_t refusal_limit = 5;        // of results that do not fit the job: then it has failed
  std::chrono::milliseconds retry_step{250};  // doubled with every interruption in a row, at most 30 s
  std::chrono::milliseconds idle_retry{
      10'000};  // how often a GPU in use is looked at for provisional records
  std::chrono::minutes failure_pause{10};
  std::uint32_t compile_leases = 4;  // of one agent at a time
  std::chrono::days job_memory{30};  // older ended jobs are forgotten
  std::uint32_t forget_after = 500;  // jobs that have ended
  CallerLimits* limits = nullptr;    // null: none
  /// Whether another user than the daemon's has sent the kernel. Empty: none has.
  std::function<bool(const std::string& kernel)> is_foreign = {};
};

class Scheduler {
 public:
  Scheduler(Store& store, Index& index, KernelLibrary& kernels, const Clock& clock,
            SchedulerOptions options = {});
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Takes up the open jobs of the store. Leased jobs are queued again, and damaged ones have failed.
  /// Provisional records are measured again: the index has been loaded before.
  void load();

  // ---- Asking ----

  /// The open job for the question, or a new one. An open job becomes a retune if a retune is asked for,
  /// searches on if a larger budget is asked for, and a job for a bucket measures exactly its problem if that
  /// is asked for. A job that has ended already (it
  /// could not be granted) comes with its last event. Throws ResourceExhausted if the queue is full or holds
  /// too many jobs of the caller,
  /// Unavailable while draining, and the store's error if the job cannot be persisted.
  JobEvent submit_tune(const RecordQuestion& question, const DeviceClass& device, bool retune);
  /// Submits many jobs, in their order. If one throws, those before it stay.
  std::vector<JobEvent> submit_tunes(const std::vector<TuneOrder>& orders, bool retune);
  /// `caller` as in TuneOrder.
  JobEvent submit_compile(const CompileOrder& order, const std::string& caller = {});
  std::optional<JobEvent> find_open(const RecordQuestion& question) const;
  std::optional<JobEvent> find(const std::string& id) const;  // open jobs
  std::vector<JobEvent> open_jobs() const;

  /// The error of the key's failure while that holds (see Failures). A miss does not start such a job again;
  /// a Tune does.
  std::optional<std::string> failed_lately(const Digest& key, bool for_bucket = false) const;

  /// Tells every change from now on. 0: the job is not open.
  std::uint64_t watch(const std::string& job_id, Watcher watcher);
  void unwatch(std::uint64_t watch_id);
  /// A caller waits for the open job from now on, so that its compilers need not stand back. Nothing happens
  /// if it is not open.
  void await(const std::string& job_id);

  /// A caller lends its GPU until end_lend(). Jobs measure there now that would wait for it, or for another
  /// GPU, until it is idle.
  std::uint64_t lend(LentGpu lent);
  /// 0: nothing happens, on any thread.
  void end_lend(std::uint64_t lend) { lend != 0 ? lent_.remove(lend) : void(); }
  const LentGpus& lent() const { return lent_; }

  /// Throws NotFound, or FailedPrecondition where the job has ended.
  JobEvent cancel(const std::string& id);

  // ---- Agents ----

  /// `link` must live until agent_left().
  std::uint64_t agent_joined(AgentProfile profile, AgentLink& link);
  void agent_devices(std::uint64_t agent, std::vector<OfferedDevice> devices);
  void agent_left(std::uint64_t agent);
  /// It hands back its leases and gets nothing more. What it hands back is granted again at once.
  void agent_leaves(std::uint64_t agent);
  /// It has sent what no agent of this build sends: other agents come first for the jobs that it holds.
  void avoid(std::uint64_t agent);
  bool has_agent(const AgentProfile& like) const;
  /// An agent of this daemon or another one measures on such a GPU, or one is on its way.
  bool may_find_device(const Digest& device_class) const;
  /// By agents of other daemons that use the store: the class is measured, or a compile is taken.
  bool is_offered_elsewhere(JobKind kind, const Digest& device_class) const;
  /// Until then a job without a device is not called no_device: an agent is on its way.
  void expect_agent_until(std::chrono::steady_clock::time_point deadline);
  bool agent_expected() const;

  /// Each renews the lease. False: the lease is over or the fence is stale; the agent was asked to drop the
  /// job, and nothing was stored.
  bool heartbeat(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence);
  bool progress(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                const WorkProgress& progress);
  /// Stored in one transaction when this returns true.
  bool store_batch(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence, WorkBatch batch);
  bool finish(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence, WorkResult result);

  /// Compiles on an agent that can; `done` is called once, with Unavailable's text in `error` if none can
  /// (then the result is empty). Gives the check's id.
  std::string check(CheckOrder order, const std::string& caller, PendingChecks::Done done);
  /// The callers have left: an agent that compiles one stops at once, and `done` is not called.
  void drop_checks(const std::vector<std::string>& ids);
  /// Throws InvalidArgument if another agent compiles it.
  void check_done(std::uint64_t agent, const std::string& id, const CheckOutcome& outcome);

  /// Takes over what other daemons on the same database have done with the jobs, the index first. Throws what
  /// the store does. Nothing happens where one daemon alone has the store.
  void catch_up();
  /// When that was done last.
  std::optional<std::chrono::steady_clock::time_point> caught_up_at() const { return caught_up_at_; }

  /// Expires leases, grants what can be granted. Call it every few hundred milliseconds.
  void tick();

  /// No more leases; agents are asked to hand back theirs. idle() tells when all have. Waits for jobs and
  /// checks end.
  void drain();
  bool idle() const;
  bool draining() const;

  std::vector<AgentProfile> agents() const;
  /// The state of a GPU: "idle", "tuning" or "waiting_for_idle_gpu".
  std::string device_state(const std::string& uuid) const;
  const JobTotals& totals() const { return totals_; }
  std::uint32_t queued() const;
  std::uint32_t running() const;

  /// Called on the job thread for every artifact that was stored.
  void on_artifact(std::function<void(const ArtifactRow&)> listener);
  /// Called after another daemon has ended a job, which may have brought artifacts.
  void on_job_ended_elsewhere(std::function<void()> listener);
  /// Called after agents or their devices have changed.
  void on_agents(std::function<void()> listener);

 private:
  // ---- scheduler_submits.cpp ----
  /// The id of the open job with the row's key, or of a new one; it is not placed yet. A retune turns an open
  /// job that is not one into a retune. The job has ended where another daemon has just done it.
  std::string enqueue(const JobRow& row, const DeviceClass& device, const std::string& caller);
  /// The same. Throws Aborted where another daemon has changed the job since this one has read it.
  std::string try_to_enqueue(JobRow row, const DeviceClass& device, const std::string& caller);
  void refuse_more_jobs() const;
  /// The row with its series, or the job with its key that another daemon was asked for: an open one, or one
  /// that is done and of which this daemon has not read yet.
  SharedJob store_new(JobRow row, const DeviceClass& device);
  /// Of the trials that jobs of this question share with others.
  std::uint32_t last_series(StoreReader& reader, const RecordQuestion& question) const;
  /// source_digest() of a kernel; zero if it has gone.
  Digest source_of(const std::string& kernel) const;
  ToolchainNeed needs_of(const JobRow& row) const;
  /// A caller asks for the open job again, perhaps with other wishes.
  void ask_again(OpenJob& job, const JobRow& asked);
  /// The job starts again as `asked`. Its measurements so far count only where it merely searches on.
  void begin_anew(OpenJob& job, const JobRow& asked);
  /// Dispatches, then gives the state of these open jobs: the last event of a job that has ended meanwhile.
  std::vector<JobEvent> dispatched(const std::vector<std::string>& ids);

  // ---- scheduler.cpp ----
  void await(OpenJob& job);
  /// Stores the row of an open job, if no other daemon has changed it (else Aborted), and whose it is then.
  void persist(OpenJob& job, const JobRow& row, const std::string& owner);
  /// The store keeps a limited number of ended jobs.
  void forget_old_jobs();
  /// Those of a store that one daemon alone has.
  void load_jobs();
  /// Ends the store's open jobs that no agent can continue.
  void fail_damaged_jobs();
  void fail_before_loaded(JobRow row, std::string error);
  /// Failures that lacked memory outlive the daemon.
  void load_failures();
  /// A full or read-only store: what it refuses now it may take later.
  static bool is_passing(const Error& error);
  /// Ends the job in the store, tells its watchers and forgets it.
  void end(OpenJob& job, JobState state, std::string error, RecordPtr record);
  /// False: another daemon has changed the job, and it has not ended.
  bool store_end(OpenJob& job);
  /// Whether there is such a kernel with this interface today.
  bool knows(const RecordQuestion& question) const;
  /// Whether agents offer the device class under another power limit alone than that of the latest
  /// measurement: its samples, whose keys are still those of today, say nothing about today's clocks.
  bool power_limit_has_changed(const RecordQuestion& question) const;
  /// Whether the job measures a record again, or replaces a provisional one: it is measured on an idle GPU
  /// or not at all. A job for which a caller asked is not.
  bool only_when_idle(const JobRow& row) const;
  bool has_provisional_record(const RecordQuestion& question) const;

  // ---- scheduler_leases.cpp ----
  void agents_changed();
  /// What is leased first: jobs of a smaller rank, of equal rank the older one. Among jobs that
  /// tune, those that a caller waits for come first.
  int rank(const OpenJob& job) const;
  /// The jobs that have no lease, in the order of rank and age; callers take turns with their compiles.
  std::vector<std::string> ranked_jobs() const;
  /// Leases what can be leased now, in the order of its rank and age.
  void dispatch();
  /// Another job is leased that measures trials which are also this one's: of the kernel, or of one with the
  /// same source. This one waits, and begins with what that one has found.
  bool is_measured_by_another(const OpenJob& job) const;
  void place(OpenJob& job);
  void mark_without_device(OpenJob& job);
  void begin_checks(std::uint64_t agent);
  void try_to_grant(OpenJob& job, const JobPlace& place);
  void grant(OpenJob& job, const JobPlace& place);
  /// The kernel that the job was submitted for. Throws FailedPrecondition where its interface is another now.
  std::shared_ptr<const KernelEntry> kernel_of(const OpenJob& job);
  /// The lease of a job without what is known of its trials, and without its id and terms.
  Lease describe(const OpenJob& job, const JobPlace& place, const KernelEntry& kernel,
                 const IndexSnapshot& index);
  /// Tells the agents which jobs come next on their GPUs, so that they compile for these meanwhile.
  void announce_next();
  /// The first, by rank and age, of the jobs that are queued for the GPU of a leased one and were not
  /// announced; null: there is none.
  OpenJob* next_behind(const OpenJob& leased);
  /// The agent of a leased job finds its GPU in use although it is lent, or not (any more).
  void note_use_of_lent_gpu(OpenJob& job, bool in_use_lent);
  /// Of calls that lend a GPU which others use for too long.
  void end_vain_waits();
  /// Without an agent that takes them they would wait forever.
  void end_jobs_without_kernel();
  /// The job that the lease is for, its lease renewed; null where it is over or the fence is stale.
  OpenJob* leased_job(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence);

  // ---- scheduler_lease_ends.cpp ----
  /// Queues a leased job again; after too many interruptions in a row it has failed.
  void requeue(OpenJob& job, const std::string& reason);
  /// Queues the job of an agent that leaves again, at once. It does not count as an interruption.
  void hand_on(OpenJob& job);
  /// The agent found the GPU in use and handed the job back. Others of its class wait with it.
  void wait_for_idle_gpu(OpenJob& job);
  /// From an agent that reports what does not fit or nothing, or no longer offers the GPU: others come first
  /// now.
  void take_back(OpenJob& job, const std::string& reason);
  void end_lease_at_agent(const OpenJob& job, const std::string& reason);
  /// Leases that no message has renewed, and those that have stored nothing for too long.
  void expire_leases();
  bool has_stalled(const OpenJob& job) const;
  void end_stalled_leases();

  // ---- scheduler_lends.cpp ----
  /// A leased job that waits for its GPU to be idle is granted again, on a lent GPU that no other job holds.
  void move_to_a_lent_gpu();

  // ---- scheduler_shared.cpp ----
  bool is_shared() const;
  /// Empty where one daemon alone has the store.
  const std::string& self() const;
  /// The owner of a job without a lease: none, or this daemon where no other can tell its callers the result.
  std::string resting_owner(const JobRow& row) const;
  /// A living daemon has leased it.
  bool is_elsewhere(const OpenJob& job) const;
  /// No other daemon has it, and this one knows the kernel or is the one to say that it is gone.
  bool may_run_here(const OpenJob& job) const;
  void take_changes();
  void take_change(SharedJob& changed, const std::map<Digest, DeviceClass>& classes);
  void adopt(OpenJob& job, SharedJob& changed);
  void add_of_another(SharedJob& changed, const std::map<Digest, DeviceClass>& classes);
  /// A job whose class is damaged in the store has no more than its digest, until an agent offers it.
  void find_device(OpenJob& job) const;
  /// Of the jobs here, those that the database no longer has among its open ones.
  void end_missing(const std::vector<SharedJob>& open);
  void end_elsewhere(OpenJob& job, JobRow ended);
  JobEvent ended_elsewhere(const std::string& id);
  /// What another daemon has made of the job.
  RecordPtr record_of(const JobRow& ended) const;
  /// The job's row is read again before this daemon does anything with it; its lease is over.
  void lose(OpenJob& job, const std::string& why);
  /// The job has no lease any more: other daemons may take it. A store that takes no writes leaves it to this
  /// one.
  void release(OpenJob& job);
  void tell_offer() const;

  // ---- scheduler_results.cpp ----
  /// Other daemons tell their callers that the job waits, or goes on. False: one of them has it by now.
  bool store_state(OpenJob& job);
  void complete_tune(OpenJob& job, WorkResult& result);
  /// A choice among the best of an earlier search is one of that search, while nothing has changed since.
  void keep_search(const OpenJob& job, RecordRow& record) const;
  /// Queues the job again, once, for another GPU that offers the room that it needs. False: there is no such
  /// GPU.
  bool move_to_more_room(OpenJob& job, const WorkResult& result);
  /// Queues the job again for the smaller problem that the agent has found to fit.
  void measure_smaller(OpenJob& job, const WorkResult& result);
  /// Enqueues the measurement that replaces the question's provisional record, if it has one.
  void measure_again_when_idle(const RecordQuestion& question, const DeviceClass& device);
  /// The job is granted again after a second at the earliest.
  void try_later(OpenJob& job);
  /// The agent's report does not fit the job. Nothing of it is stored, and other agents come first from then
  /// on.
  void refuse(OpenJob& job, const Error& error);
  /// What passes (a store that takes no writes now) queues the job again, as often as it takes; whatever else
  /// went wrong ends it.
  void give_up(OpenJob& job, const Error& error);

  Store& store_;
  Index& index_;
  KernelLibrary& kernels_;
  const Clock& clock_;
  const SchedulerOptions options_;

  OpenJobs jobs_;
  JoinedAgents agents_;
  LentGpus lent_;
  Failures failures_;
  Placement placement_;
  PendingChecks checks_;
  std::vector<std::function<void(const ArtifactRow&)>> artifact_listeners_;
  std::vector<std::function<void()>> agent_listeners_, elsewhere_listeners_;
  std::uint64_t last_agent_ = 0;
  std::uint32_t ended_since_ = 0;  // jobs, since old ones were forgotten
  JobTotals totals_;
  std::chrono::steady_clock::time_point agent_expected_until_{}, next_look_for_kernels_{};
  bool draining_ = false;
  bool dispatching_ = false;
  std::uint64_t last_change_ = 0;  // of jobs, that was read
  std::uint64_t interruptions_ = 0;
  bool reads_all_ = true;  // with the next changes
  std::optional<std::chrono::steady_clock::time_point> caught_up_at_;
};

}  // namespace cubind
