#include "server/jobs/agent_roster.hpp"

namespace cubind {

std::uint64_t AgentRoster::join(AgentProfile profile, AgentLink& link) {
  joined_[++last_] = {std::move(profile), &link};
  expected_until_ = {};
  return last_;
}

JoinedAgent* AgentRoster::find(std::uint64_t agent) {
  const auto found = joined_.find(agent);
  return found == joined_.end() ? nullptr : &found->second;
}

std::vector<AgentProfile> AgentRoster::profiles() const {
  std::vector<AgentProfile> profiles;
  for (const auto& [id, agent] : joined_) {
    profiles.push_back(agent.profile);
  }
  return profiles;
}

bool AgentRoster::has(const AgentProfile& like) const {
  return std::ranges::any_of(joined_,
                             [&](const auto& agent) { return agent.second.profile.key() == like.key(); });
}

void AgentRoster::tell_change() const {
  std::ranges::for_each(listeners_, [](const auto& tell) { tell(); });
}

}  // namespace cubind
