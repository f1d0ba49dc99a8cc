// The agents that are connected, and whether one is expected.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "server/jobs/agent.hpp"

namespace cubind {

/// A connected agent with its link.
struct JoinedAgent {
  AgentProfile profile;
  AgentLink* link = nullptr;
  bool is_leaving = false;  // it gets no more work
};

using JoinedAgents = std::map<std::uint64_t, JoinedAgent>;  // by the agent's number

/// The devices of all agents. `agents` must outlive the range.
inline auto devices_of(const JoinedAgents& agents) {
  const auto devices = [](const JoinedAgent& agent) -> const std::vector<OfferedDevice>& {
    return agent.profile.devices;
  };
  return agents | std::views::values | std::views::transform(devices) | std::views::join;
}

/// Whether `fits` returns true for one of the offered devices; it is called with the agent's number and the
/// device.
template <typename Fits>
bool any_device(const JoinedAgents& agents, const Fits& fits) {
  return std::ranges::any_of(agents, [&](const auto& agent) {
    return std::ranges::any_of(agent.second.profile.devices,
                               [&](const OfferedDevice& device) { return fits(agent.first, device); });
  });
}

/// Used on the job thread.
class AgentRoster {
 public:
  explicit AgentRoster(const Clock& clock) : clock_(clock) {}

  /// Returns the agent's number, never 0. Then none is expected any more.
  std::uint64_t join(AgentProfile profile, AgentLink& link);
  void remove(std::uint64_t agent) { joined_.erase(agent); }
  const JoinedAgents& joined() const { return joined_; }
  /// Null: it has left.
  JoinedAgent* find(std::uint64_t agent);

  std::vector<AgentProfile> profiles() const;
  bool has(const AgentProfile& like) const;
  /// Until `deadline` a job without a device is not reported as no_device, because an agent is expected.
  void expect_until(std::chrono::steady_clock::time_point deadline) { expected_until_ = deadline; }
  bool is_expected() const { return clock_.steady_now() < expected_until_; }

  /// `listener` is called after a change of the agents or their devices.
  void on_change(std::function<void()> listener) { listeners_.push_back(std::move(listener)); }
  void tell_change() const;

 private:
  const Clock& clock_;
  JoinedAgents joined_;
  std::uint64_t last_ = 0;
  std::chrono::steady_clock::time_point expected_until_{};
  std::vector<std::function<void()>> listeners_;
};

}  // namespace cubind
