// The leases that this daemon's agents hold: found by id, GPU and agent, renewed, ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "server/jobs/open_jobs.hpp"

namespace cubind {

/// Used on the job thread.
class Leases {
 public:
  /// `length`: from one renewal to the end.
  Leases(const Clock& clock, std::chrono::milliseconds length) : clock_(clock), length_(length) {}

  const std::map<std::string, OpenJob*>& held() const { return held_; }  // by lease id
  /// The leased jobs that satisfy the condition, as a copy, so that the caller may end their leases.
  std::vector<OpenJob*> where(const std::function<bool(const OpenJob&)>& condition) const;
  std::vector<OpenJob*> of_agent(std::uint64_t agent) const;
  /// The number of compile jobs that an agent holds.
  std::uint32_t compiles_of(std::uint64_t agent) const;
  /// Whether any agent holds a lease on the GPU; several agents may offer the same GPU.
  bool holds_gpu(const std::string& uuid) const { return held_gpus_.contains(uuid); }
  /// "idle", "tuning" or "waiting_for_idle_gpu".
  std::string gpu_state(const std::string& uuid) const;

  /// Begins the lease now. `lease` has the id, the agent with its link, and the GPU.
  void begin(OpenJob& job, HeldLease lease);
  /// Adds the lease's time to the job and ends the lease. Does nothing if it has none.
  void end(OpenJob& job);
  /// Ends the lease of a job that goes on: it waits in this state, at no stage.
  void end(OpenJob& job, JobState next);
  /// Ends the lease and tells its agent to drop the job. Does nothing if it has none.
  void withdraw(OpenJob& job, const std::string& reason);

  /// The job of a lease that has just been renewed; null if the lease is over or the fence is stale.
  OpenJob* renew(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence);

 private:
  const Clock& clock_;
  const std::chrono::milliseconds length_;
  std::map<std::string, OpenJob*> held_;
  std::multiset<std::string> held_gpus_;             // by uuid
  std::map<std::uint64_t, std::uint32_t> compiles_;  // by agent
};

}  // namespace cubind
