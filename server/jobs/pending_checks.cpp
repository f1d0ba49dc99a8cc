#include "server/jobs/pending_checks.hpp"

#include <utility>
#include <vector>

namespace cubind {

std::string PendingChecks::add(std::uint64_t agent, Done done) {
  std::string id = "check-" + std::to_string(++last_);
  checks_[id] = {agent, std::move(done)};
  return id;
}

void PendingChecks::finish(const std::string& id, const CheckOutcome& outcome) {
  const auto found = checks_.find(id);
  if (found == checks_.end()) {
    return;
  }
  const Done done = std::move(found->second.done);
  checks_.erase(found);
  done(outcome, "");
}

void PendingChecks::agent_left(std::uint64_t agent) {
  std::vector<Done> unanswered;
  for (auto check = checks_.begin(); check != checks_.end();) {
    if (check->second.agent == agent) {
      unanswered.push_back(std::move(check->second.done));
      check = checks_.erase(check);
    } else {
      ++check;
    }
  }
  for (const Done& done : unanswered) {
    done({}, "the agent that compiled it left");
  }
}

}  // namespace cubind
