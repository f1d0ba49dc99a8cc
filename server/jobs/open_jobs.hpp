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

/// Where a job is being worked on, and until when that is taken for granted.
struct HeldLease {
  std::string id;
  std::uint64_t agent = 0;
  std::string gpu_uuid;  // empty: a job that compiles
  DriverVersion driver;
  std::chrono::steady_clock::time_point since{}, until{};
  std::shared_ptr<const KernelSpec> spec;  // that the agent was given
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
  /// Measured instead of the question's, which does not fit into the GPU's memory. Not stored: after a
  /// restart the agent says so again.
  std::optional<Problem> smaller;
  /// The need by the word of a GPU without room: the job waits for a GPU with so much. 0: no GPU has said so.
  /// Not stored.
  std::uint64_t needs_bytes = 0;
  std::optional<HeldLease> lease;
  std::string refusal;            // why the store did not take its results, until the next lease. Not stored
  std::string waits_because;      // who uses the GPU that a leased job waits for. Not stored
  bool in_use_lent = false;       // the agent finds the GPU in use although it is lent. Not stored
  bool waits_lent = false;        // and calls have waited long enough for its other users. Not stored
  bool is_announced = false;      // to an agent, as the one that comes next
  std::set<std::string> avoided;  // keys of agents that get it only if no other can. Not stored
  std::uint32_t refusals = 0;     // of results. Not stored
  bool is_awaited = false;        // a caller waits for it, or did. Not stored
  std::string caller;             // who started it; empty: the daemon. Not stored
  bool is_asked_here = false;     // its kernel is known to this daemon, or it has failed. Not stored
  std::uint64_t change = 0;       // as SharedJob has both; 0: the row has to be read again
  std::string owner;
  CallerLimits::Hold counted;
  std::map<std::uint64_t, Watcher> watchers;

  /// What is measured.
  RecordQuestion measured() const;
};

/// Changes nothing of a job but its lease and its watchers. References to jobs stay valid until remove().
class OpenJobs {
 public:
  explicit OpenJobs(const Clock& clock) : clock_(clock) {}

  OpenJob& add(JobRow row, const DeviceClass& device, ToolchainNeed needs = {});
  /// Tells those who still watch the job its last event, when it is no longer here.
  void remove(OpenJob& job, const JobEvent& last);

  /// Each: null where there is none.
  OpenJob* find(const std::string& id);
  const OpenJob* find(const std::string& id) const;
  OpenJob* find_key(const Digest& key);
  const OpenJob* find_key(const Digest& key) const;
  OpenJob* find_lease(const std::string& lease_id);

  std::list<OpenJob>& all() { return jobs_; }  // oldest first
  const std::list<OpenJob>& all() const { return jobs_; }
  const std::map<std::string, OpenJob*>& leased() const { return leased_; }  // by lease id
  /// Those of them that satisfy it: a list of its own, so that their leases may end meanwhile.
  std::vector<OpenJob*> leased_where(const std::function<bool(const OpenJob&)>& condition) const;
  /// How many jobs that compile an agent holds.
  std::uint32_t compile_leases(std::uint64_t agent) const;
  /// Whichever agent holds it: several may offer one GPU.
  bool gpu_is_leased(const std::string& uuid) const { return leased_gpus_.contains(uuid); }

  void begin_lease(OpenJob& job, HeldLease lease);
  /// The job has taken the time of its lease. Nothing happens where it has none.
  void end_lease(OpenJob& job);

  /// As the job is now, with the time that its lease has taken so far.
  JobEvent event(const OpenJob& job) const;
  /// Tells who watches the job how it is now. A watcher may stop watching meanwhile.
  void tell(const OpenJob& job) const;
  /// Tells who watches any job.
  void tell_that_daemon_stops() const;
  /// Never 0.
  std::uint64_t watch(OpenJob& job, Watcher watcher);
  /// Of a job that has ended, and 0: nothing happens.
  void unwatch(std::uint64_t watch_id);

 private:
  static void tell(const OpenJob& job, const JobEvent& now);
  /// How old its lease is; 0: it has none.
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
