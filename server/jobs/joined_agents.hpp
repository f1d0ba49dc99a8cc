// The connected agents.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <ranges>

#include "server/jobs/agent.hpp"

namespace cubind {

/// A connected agent with its link.
struct JoinedAgent {
  AgentProfile profile;
  AgentLink* link = nullptr;
  bool is_leaving = false;  // it gets no more work
};

using JoinedAgents = std::map<std::uint64_t, JoinedAgent>;  // by the agent's number in the scheduler

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

}  // namespace cubind
