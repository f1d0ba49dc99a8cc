// The GPUs that callers lend while they wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "server/jobs/agent_roster.hpp"
#include "server/jobs/leases.hpp"

namespace cubind {

/// Agents that offer a GPU get the list of its lends at every change. A lend belongs to the GPU, not to a
/// job: while there is one, every job may measure on the GPU. Used on the job thread.
class LentGpus {
 public:
  explicit LentGpus(const JoinedAgents& agents) : agents_(agents) {}

  /// Adds a lend, which lasts until remove(). Returns its number, never 0.
  std::uint64_t add(LentGpu lent);
  void remove(std::uint64_t lend);

  bool is_lent(const std::string& gpu_uuid) const;
  /// Notes whether the agent of a leased job finds its GPU in use although it is lent. The job waits in vain
  /// for a GPU that has been so for ten seconds; until then other processes of a job may reach the same call
  /// and lend it too. For the next minute it does at once.
  void note_use(OpenJob& job, bool in_use_lent, std::chrono::steady_clock::time_point now);
  /// The jobs that begin to wait in vain now; each is returned once.
  std::vector<OpenJob*> vain_waits(const Leases& leases, std::chrono::steady_clock::time_point now);
  /// Whether an agent accepts the lend and measures for this device class on the GPU.
  bool serves(std::uint64_t lend, const Digest& device_class) const;
  /// Sends the lends to an agent that has joined or offers other devices.
  void tell(const JoinedAgent& agent) const;

 private:
  bool is_used_in_spite(const std::string& gpu_uuid, std::chrono::steady_clock::time_point now);
  void tell_of(const std::string& gpu_uuid) const;

  const JoinedAgents& agents_;
  std::map<std::uint64_t, LentGpu> lends_;
  std::map<std::string, std::chrono::steady_clock::time_point> in_use_since_;  // by GPU, while it is lent
  std::uint64_t last_ = 0;
};

}  // namespace cubind
