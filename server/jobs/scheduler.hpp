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
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "server/jobs/agent.hpp"
#include "server/jobs/job_event.hpp"
#include "server/lookup/index.hpp"

namespace cubind {

class KernelLibrary;
class Store;

struct SchedulerOptions {
  std::chrono::milliseconds lease{15'000};
  std::size_t queue_limit = 10'000;       // open jobs
  std::uint32_t interruption_limit = 10;  // in a row, with nothing stored in between: then a job has failed
  std::chrono::milliseconds retry_step{250};  // doubled with every interruption in a row, at most 30 s
  std::chrono::milliseconds idle_retry{
      10'000};  // how often a GPU in use is looked at for provisional records
  std::chrono::minutes failure_pause{10};
  std::uint32_t compile_leases = 4;  // of one agent at a time
};

struct CompileOrder {
  RecordQuestion question;
  DeviceClass device;
  Digest key;  // single-flight: of source, configuration, architecture and driver
  std::vector<Configuration> configurations;
  std::string architecture;
  std::uint32_t driver_cuda = 0;
};

struct TuneOrder {
  RecordQuestion question;
  DeviceClass device;
  /// The problem stands for its bucket: where it does not fit into the GPU's memory, the largest smaller one
  /// that does is measured. Otherwise exactly this problem is.
  bool for_bucket = false;
};

class Scheduler {
 public:
  Scheduler(Store& store, Index& index, KernelLibrary& kernels, const Clock& clock,
            SchedulerOptions options = {});
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Takes up the open jobs of the store. What was leased is queued again, what is damaged has failed.
  /// Provisional records are measured again: the index has been loaded before.
  void load();

  // ---- Asking ----

  /// The open job for the question, or a new one; an open job that is no retune becomes one where one is
  /// asked for, and one for a bucket measures exactly its problem where that is asked for. A job that has
  /// ended already (it could not be granted) comes with its last event. Throws ResourceExhausted where the
  /// queue is full, Unavailable while draining, and what the store throws where the job cannot be persisted.
  JobEvent submit_tune(const RecordQuestion& question, const DeviceClass& device, bool retune);
  /// Many at once, in their order. Where one throws, those before it stay.
  std::vector<JobEvent> submit_tunes(const std::vector<TuneOrder>& orders, bool retune);
  JobEvent submit_compile(const CompileOrder& order);
  std::optional<JobEvent> find_open(const RecordQuestion& question) const;
  std::optional<JobEvent> find(const std::string& id) const;  // open jobs
  std::vector<JobEvent> open_jobs() const;

  /// The error of the latest job with this key, if the kernel's spec is still the same and it failed within
  /// failure_pause or, for the lack of memory, while no GPU offers enough of it. A miss does not
  /// start such a job again; whoever asks for it by name (Tune) does. That exactly the problem did not fit
  /// says nothing to who asks for its bucket.
  std::optional<std::string> failed_lately(const Digest& key, bool for_bucket = false) const;

  /// Tells every change from now on. 0: the job is not open.
  std::uint64_t watch(const std::string& job_id, Watcher watcher);
  void unwatch(std::uint64_t watch_id);

  /// Throws NotFound, or FailedPrecondition where the job has ended.
  JobEvent cancel(const std::string& id);

  // ---- Agents ----

  /// `link` must live until agent_left().
  std::uint64_t agent_joined(AgentProfile profile, AgentLink& link);
  void agent_devices(std::uint64_t agent, std::vector<OfferedDevice> devices);
  void agent_left(std::uint64_t agent);
  /// Until then a job without a device is not called no_device: an agent is on its way.
  void expect_agent_until(std::chrono::steady_clock::time_point deadline);
  bool agent_expected() const;

  /// Each renews the lease. False: the lease is over or the fence is stale; the agent has been told to drop
  /// the job, and nothing was stored.
  bool heartbeat(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence);
  bool progress(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                const WorkProgress& progress);
  /// Stored in one transaction when this returns true.
  bool store_batch(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence, WorkBatch batch);
  bool finish(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence, WorkResult result);

  /// Compiles on an agent that can; `done` is called once, with Unavailable's text in `error` where none can.
  void check(CheckOrder order, std::function<void(const CheckOutcome&, const std::string& error)> done);
  void check_done(const std::string& id, const CheckOutcome& outcome);

  /// Expires leases, grants what can be granted. Call it every few hundred milliseconds.
  void tick();

  /// No more leases; agents are asked to hand back theirs. idle() tells when all have.
  void drain();
  bool idle() const;
  bool draining() const;

  std::vector<AgentProfile> agents() const;
  /// The state of a GPU: "idle", "tuning" or "waiting_for_idle_gpu".
  std::string device_state(const std::string& uuid) const;
  std::uint32_t queued() const;
  std::uint32_t running() const;

  /// Called on the job thread for every artifact that was stored.
  void on_artifact(std::function<void(const ArtifactRow&)> listener);
  /// Called after agents or their devices have changed.
  void on_agents(std::function<void()> listener);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cubind
