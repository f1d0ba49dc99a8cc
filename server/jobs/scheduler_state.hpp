// The inside of Scheduler, shared by its source files.
#pragma once

#include <list>
#include <set>

#include "server/jobs/scheduler.hpp"

namespace cubind {

using SteadyTime = std::chrono::steady_clock::time_point;

/// A job that has not ended.
struct OpenJob {
  JobRow row;
  DeviceClass device;
  std::string phase;
  double best_us = 0;
  std::map<std::uint64_t, Watcher> watchers;
  SteadyTime not_before{};  // after an interruption
  /// Measured in the place of the question's, which does not fit into the GPU's memory. Not stored: after a
  /// restart the agent says so again.
  std::optional<Problem> smaller;
  /// By a GPU that had no room: it waits for one that has. 0: none has said so. Not stored.
  std::uint64_t needs_bytes = 0;

  // While leased:
  std::string lease_id;  // empty: not leased
  std::uint64_t agent = 0;
  std::string gpu_uuid;
  DriverVersion driver;
  SteadyTime leased_until{};
  SteadyTime leased_at{};

  bool leased() const { return !lease_id.empty(); }
  /// How long the lease that it has is old; 0: it has none.
  double leased_ms(SteadyTime now) const {
    return leased() ? std::chrono::duration<double, std::milli>(now - leased_at).count() : 0;
  }
  /// What is measured.
  RecordQuestion measured() const {
    RecordQuestion question = row.question;
    question.problem = smaller.value_or(question.problem);
    return question;
  }
};

struct JoinedAgent {
  AgentProfile profile;
  AgentLink* link = nullptr;
  std::map<std::string, std::uint64_t> watched;  // by GPU: what it was last told to watch for; 0: nothing
};

struct WaitingCheck {
  std::uint64_t agent = 0;
  std::function<void(const CheckOutcome&, const std::string&)> done;
};

struct Scheduler::State {
  State(Store& the_store, Index& the_index, KernelLibrary& library, const Clock& the_clock,
        SchedulerOptions settings)
      : store(the_store), index(the_index), kernels(library), clock(the_clock), options(settings) {}

  // ---- scheduler.cpp ----
  /// The open job with the row's key, or a new one; it is not placed yet. A retune that meets an open job
  /// which is none makes it one.
  OpenJob& enqueue(JobRow row, const DeviceClass& device);
  OpenJob& add(JobRow row, const DeviceClass& device);
  /// What the job has measured so far does not count: it is done again as `asked`.
  void begin_anew(OpenJob& job, const JobRow& asked);
  /// Dispatches, then says how these open jobs are: of one that has ended meanwhile, its last event.
  std::vector<JobEvent> dispatched(const std::vector<std::string>& ids);
  std::uint64_t watch(OpenJob& job, Watcher watcher);
  void unwatch(std::uint64_t watch_id);
  JobEvent event_of(const OpenJob& job) const;
  OpenJob* find(const std::string& id);
  void tell(const OpenJob& job);
  void persist(const JobRow& row);
  /// Of the store's open jobs, those that nobody can go on with.
  void fail_damaged_jobs();
  void fail_before_loaded(JobRow row, std::string error);
  /// Ends the job in the store, tells its watchers and forgets it.
  void end(OpenJob& job, JobState state, std::string error, RecordPtr record);
  void forget(const std::string& id, const JobEvent& last);
  /// Whether there is such a kernel with this interface today.
  bool knows(const RecordQuestion& question) const;
  /// 0: the kernel is not known.
  std::uint64_t revision_of(const std::string& kernel) const;
  std::string fresh_id();

  // ---- leases.cpp ----
  void dispatch();
  void place(OpenJob& job);
  void mark_without_device(OpenJob& job);
  /// Whether every GPU that could measure for the job is held by one that waits until it is idle.
  bool waits_behind_foreign_use(const OpenJob& job) const;
  struct Place {
    std::uint64_t agent = 0;
    const OfferedDevice* device = nullptr;  // null: a job that compiles
  };
  /// Where the job can run now: where it was out of memory, on a GPU with enough of it, if there is one (it is
  /// waited for). `exists` tells whether it could run anywhere, were it free.
  std::optional<Place> find_place(const OpenJob& job, bool& exists) const;
  std::optional<Place> find_compiler(const OpenJob& job, bool& exists) const;
  bool gpu_is_leased(std::uint64_t agent, const std::string& uuid) const;
  std::uint32_t compile_leases(std::uint64_t agent) const;
  void grant(OpenJob& job, const Place& place);
  void release(OpenJob& job);
  void drop_lease(OpenJob& job);
  /// Queues a leased job again; after too many interruptions in a row it has failed.
  void requeue(OpenJob& job, const std::string& reason);
  void expire_leases();
  bool has_provisional_record(const RecordQuestion& question) const;
  /// Whether the job replaces a provisional record: it is measured on an idle GPU or not at all. What
  /// somebody asked to be measured anew is not.
  bool only_when_idle(const JobRow& row) const;
  /// Whether agents offer the device class under another power limit alone than that of the latest
  /// measurement: its samples, whose keys are still those of today, say nothing about today's clocks.
  bool power_limit_has_changed(const RecordQuestion& question) const;
  /// The agent found the GPU in use and handed the job back. Others of its class wait with it.
  void wait_for_idle_gpu(OpenJob& job);
  /// The job that the lease is for, its lease renewed; null where it is over or the fence is stale.
  OpenJob* leased_job(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence);

  // ---- failures.cpp ----
  void note_failure(const JobRow& row);
  /// Failures for the lack of memory outlive the daemon.
  void load_failures();
  /// Tells the agents, where it has changed, how much memory a job that was out of it waits for.
  void watch_memory();
  std::uint64_t memory_to_watch(const OfferedDevice& device) const;
  /// Of a job with this key that has failed for the lack of memory; 0: of none.
  std::uint64_t memory_needed(const Digest& key) const;

  // ---- results.cpp ----
  void store_rows(const OpenJob& job, WorkBatch& batch);
  void complete_tune(OpenJob& job, WorkResult& result);
  /// Queues the job again, once, for another GPU that offers the room that it needs. False: there is none.
  bool move_to_more_room(OpenJob& job, const WorkResult& result);
  /// Queues the job again for the smaller problem that the agent has found to fit.
  void measure_smaller(OpenJob& job, const WorkResult& result);
  /// Enqueues the measurement that replaces the question's provisional record, if it has one.
  void measure_again_when_idle(const RecordQuestion& question, const DeviceClass& device);

  Store& store;
  Index& index;
  KernelLibrary& kernels;
  const Clock& clock;
  const SchedulerOptions options;

  std::list<OpenJob> jobs;  // oldest first
  std::map<std::string, std::list<OpenJob>::iterator> by_id;
  std::map<Digest, OpenJob*> by_key;
  std::map<std::string, OpenJob*> leases;  // by lease id: the jobs that are leased
  std::map<std::uint64_t, JoinedAgent> agents;
  std::map<std::uint64_t, std::string> watches;  // watch id to job id
  std::map<std::string, WaitingCheck> checks;
  struct Failure {
    std::string error;
    SteadyTime until;
    std::string kernel;
    std::uint64_t revision = 0;  // of the kernel's spec
    Digest device_class;
    bool for_bucket = false;
    std::uint64_t needs_bytes = 0;  // 0: not for the lack of memory
  };
  bool may_fit(const Failure& failure) const;
  std::map<Digest, Failure> failures;  // by key
  std::vector<std::function<void(const ArtifactRow&)>> artifact_listeners;
  std::vector<std::function<void()>> agent_listeners;
  std::uint64_t last_agent = 0, last_watch = 0, last_lease = 0;
  SteadyTime agent_expected_until{};
  bool draining = false;
  bool dispatching = false;
};

}  // namespace cubind
