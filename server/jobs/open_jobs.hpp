// The jobs that have not ended: found by id and key, and watched.
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
#include "schemas/agent.pb.h"
#include "server/access/caller_limits.hpp"
#include "server/jobs/job_event.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

class AgentLink;

/// Whether the job measures on a GPU, shares its trials with other jobs and ends with a record. A job that
/// does not compiles on any agent with the toolchain. The queue asks nothing else about a job's kind.
inline bool measures(JobKind kind) { return kind == v1::Job::TUNE; }
inline bool measures(const JobRow& job) { return measures(job.kind); }

using Stages = google::protobuf::RepeatedPtrField<StageTime>;

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
  AgentLink* link = nullptr;
  std::string agent_key = {};      // AgentProfile::key()
  bool next_is_announced = false;  // the agent knows which job comes after this one
  Stages stages = {};              // their times, when the agent last reported
  std::string timed_stage = {};    // the one of them that goes on
  Stages shown = {};               // what stages_at() had then
  std::chrono::steady_clock::time_point reported{};

  void note(const Stages& told, const std::string& told_stage, std::chrono::steady_clock::time_point now);
  /// The reported times; the timed stage goes on. No stage ever loses time: if a report shows that another
  /// one was timed, that one gets its time as more passes. Together they take no more than was reported.
  Stages stages_at(std::chrono::steady_clock::time_point now) const;
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
  std::uint64_t change = 0;       // as in SharedJob; 0: the row must be read again. Of JobOwners
  std::string owner;              // as in SharedJob. Of JobOwners
  CallerLimits::Hold counted;
  std::map<std::uint64_t, Watcher> watchers;

  /// The question with the problem that is measured.
  RecordQuestion measured() const;
  /// Notes that a caller waits for the job. If it is leased, notifies its agent, once.
  void await();
  /// Takes over what the agent of its lease tells. Returns whether the state has changed.
  bool note(const v1::Progress& progress, std::chrono::steady_clock::time_point now);
  /// Adds what its lease and the lease's stages have taken so far, if it has one.
  void add_lease(v1::Job& to, std::chrono::steady_clock::time_point now) const;
};

/// Changes only a job's watchers. References to jobs stay valid until remove().
class OpenJobs {
 public:
  explicit OpenJobs(const Clock& clock) : clock_(clock) {}

  OpenJob& add(JobRow row, const DeviceClass& device, ToolchainNeed needs = {});
  /// Removes the job, which has no lease, then sends its last event to the remaining watchers.
  void remove(OpenJob& job, const JobEvent& last);

  /// Each returns null if there is no such job.
  OpenJob* find(const std::string& id) const;
  OpenJob* find_key(const Digest& key) const;

  std::list<OpenJob>& all() { return jobs_; }  // oldest first
  const std::list<OpenJob>& all() const { return jobs_; }

  /// The job's current state, with the time that its lease and its stages have taken so far.
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

  const Clock& clock_;
  std::list<OpenJob> jobs_;
  std::map<std::string, std::list<OpenJob>::iterator> by_id_;
  std::map<Digest, OpenJob*> by_key_;
  std::map<std::uint64_t, std::string> watches_;  // watch id to job id
  std::uint64_t last_watch_ = 0;
};

}  // namespace cubind
