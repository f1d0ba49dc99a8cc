// The jobs that have not ended: found by id, key and lease, and watched.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "server/access/caller_limits.hpp"
#include "server/jobs/job_event.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The agent and GPU that work on a job, and the time until which they are trusted to.
struct HeldLease {
  std::string id;
  std::uint64_t agent = 0;
  std::string gpu_uuid;  // empty: a job that compiles
  DriverVersion driver;
  std::chrono::steady_clock::time_point since{}, until{};
  std::shared_ptr<const KernelSpec> spec;  // the spec that the agent received
  DeviceFacts facts;                       // of the GPU, or of the job's class
  std::chrono::steady_clock::time_point last_result{};
  bool next_is_announced = false;  // the agent knows which job comes after this one
};

/// A job that has not ended.
struct OpenJob {
  JobRow row;
  DeviceClass device;
  ToolchainNeed needs;  // of the agent
  std::string stage;
  double best_us = 0;
  std::chrono::steady_clock::time_point not_before{};  // after an interruption
  /// The problem that is measured instead of the question's, which does not fit into the GPU's memory. Not
  /// stored: after a restart the agent reports it again.
  std::optional<Problem> smaller;
  /// The memory that a GPU without enough room has reported as needed: the job waits for a GPU with that
  /// much. 0: no GPU has reported it. Not stored.
  std::uint64_t needs_bytes = 0;
  std::optional<HeldLease> lease;
  std::string refusal;            // why the store refused its results, until the next lease. Not stored
  std::string waits_because;      // the other user of the GPU that a leased job waits for. Not stored
  bool in_use_lent = false;       // the agent finds the GPU in use although it is lent. Not stored
  bool waits_lent = false;        // in_use_lent, and calls have waited long enough for others. Not stored
  bool is_announced = false;      // announced to an agent as its next job
  std::set<std::string> avoided;  // keys of agents that get the job only if no other can. Not stored
  std::uint32_t refusals = 0;     // of results. Not stored
  bool is_awaited = false;        // a caller waits for it, or did. Not stored
  std::string caller;             // the caller that started it; empty: the daemon. Not stored
  bool is_asked_here = false;     // its kernel is known to this daemon, or it has failed. Not stored
  std::uint64_t change = 0;       // as in SharedJob; 0: the row must be read again
  std::string owner;
  CallerLimits::Hold counted;
  std::map<std::uint64_t, Watcher> watchers;

  /// The question with the problem that is measured.
  RecordQuestion measured() const;
};

/// Changes only a job's lease and watchers. References to jobs stay valid until remove().
class OpenJobs {
 public:
  explicit OpenJobs(const Clock& clock) : clock_(clock) {}

  OpenJob& add(JobRow row, const DeviceClass& device, ToolchainNeed needs = {});
  /// Removes the job, then sends its last event to the remaining watchers.
  void remove(OpenJob& job, const JobEvent& last);

  /// Each returns null if there is no such job.
  OpenJob* find(const std::string& id);
  const OpenJob* find(const std::string& id) const;
  OpenJob* find_key(const Digest& key);
  const OpenJob* find_key(const Digest& key) const;
  OpenJob* find_lease(const std::string& lease_id);

  std::list<OpenJob>& all() { return jobs_; }  // oldest first
  const std::list<OpenJob>& all() const { return jobs_; }
  const std::map<std::string, OpenJob*>& leased() const { return leased_; }  // by lease id
  /// The leased jobs that satisfy the condition, as a copy, so that the caller may end their leases.
  std::vector<OpenJob*> leased_where(const std::function<bool(const OpenJob&)>& condition) const;
  /// The number of compile jobs that an agent holds.
  std::uint32_t compile_leases(std::uint64_t agent) const;
  /// Whether any agent holds a lease on the GPU; several agents may offer the same GPU.
  bool gpu_is_leased(const std::string& uuid) const { return leased_gpus_.contains(uuid); }

  void begin_lease(OpenJob& job, HeldLease lease);
  /// Adds the lease's time to the job and ends the lease. Does nothing if it has none.
  void end_lease(OpenJob& job);

  /// The job's current state, with the time that its lease has taken so far.
  JobEvent event(const OpenJob& job) const;
  /// Sends the job's current state to its watchers. A watcher may call unwatch() during this.
  void tell(const OpenJob& job) const;
  /// Notifies the watchers of every job. A watcher may remove jobs, as a call does whose jobs go with it.
  void tell_that_daemon_stops() const;
  /// Never 0.
  std::uint64_t watch(OpenJob& job, Watcher watcher);
  /// Does nothing for 0 or if the job has ended.
  void unwatch(std::uint64_t watch_id);

 private:
  static void tell(const OpenJob& job, const JobEvent& now);
  /// The age of the job's lease; 0 if it has none.
  double leased_ms(const OpenJob& job) const;

  const Clock& clock_;
  std::list<OpenJob> jobs_;
  std::map<std::string, std::list<OpenJob>::iterator> by_id_;
  std::map<Digest, OpenJob*> by_key_;
  std::map<std::string, OpenJob*> leased_;
  std::multiset<std::string> leased_gpus_;                 // by uuid
  std::map<std::uint64_t, std::uint32_t> compile_leases_;  // by agent
  std::map<std::uint64_t, std::string> watches_;           // watch id to job id
  std::uint64_t last_watch_ = 0;
};

}  // namespace cubind
