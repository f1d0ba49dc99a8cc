// The GPUs that callers lend while they wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "server/jobs/joined_agents.hpp"

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
  /// Notes that an agent finds a lent GPU in use. Returns whether it has been in use for ten seconds; until
  /// then other processes of a job may reach the same call and lend it too. For the next minute the result is
  /// true at once.
  bool is_used_in_spite(const std::string& gpu_uuid, std::chrono::steady_clock::time_point now);
  /// Notes that a job measures on the GPU.
  void is_ours(const std::string& gpu_uuid) { in_use_since_.erase(gpu_uuid); }
  /// Whether an agent accepts the lend and measures for this device class on the GPU.
  bool serves(std::uint64_t lend, const Digest& device_class) const;
  /// Sends the lends to an agent that has joined or offers other devices.
  void tell(const JoinedAgent& agent) const;

 private:
  void tell_of(const std::string& gpu_uuid) const;

  const JoinedAgents& agents_;
  std::map<std::uint64_t, LentGpu> lends_;
  std::map<std::string, std::chrono::steady_clock::time_point> in_use_since_;  // by GPU, while it is lent
  std::uint64_t last_ = 0;
};

}  // namespace cubind
