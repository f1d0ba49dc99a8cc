#include "server/jobs/pending_checks.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace cubind {

std::string PendingChecks::add(std::uint64_t agent, std::string caller, CheckOrder order, Done done) {
  order.id = "check-" + std::to_string(++last_);
  std::string id = order.id;
  checks_.push_back({agent, std::move(caller), std::move(order), std::move(done), false});
  begin(agent);
  return id;
}

std::list<PendingChecks::Check>::iterator PendingChecks::find(const std::string& id) {
  return std::ranges::find_if(checks_, [&](const Check& check) { return check.order.id == id; });
}

unsigned PendingChecks::begun_of(std::uint64_t agent, const std::string* caller) const {
  return static_cast<unsigned>(std::ranges::count_if(checks_, [&](const Check& check) {
    return check.is_begun && check.agent == agent && (!caller || check.caller == *caller);
  }));
}

void PendingChecks::begin(std::uint64_t agent) {
  const auto joined = agents_.find(agent);
  if (joined == agents_.end()) {
    return;
  }
  while (Check* next = next_of(agent, std::max(joined->second.profile.compile_jobs, 2U))) {
    next->is_begun = true;
    CheckOrder order = std::move(next->order);
    next->order = CheckOrder();
    next->order.id = order.id;
    joined->second.link->check(order);
  }
}

PendingChecks::Check* PendingChecks::next_of(std::uint64_t agent, unsigned limit) {
  Check* next = nullptr;
  unsigned fewest = begun_of(agent, nullptr) < limit ? limit - 1 : 0;
  for (Check& check : checks_) {
    if (check.is_begun || check.agent != agent || (next && next->caller == check.caller)) {
      continue;
    }
    if (const unsigned begun = begun_of(agent, &check.caller); begun < fewest) {
      fewest = begun;
      next = &check;
    }
  }
  return next;
}

void PendingChecks::finish(std::uint64_t agent, const std::string& id, const v1::CheckResult& result) {
  const auto found = find(id);
  if (found != checks_.end()) {
    if (found->agent != agent) {
      throw Error(ErrorCode::InvalidArgument, "check.id", id + " was given to another agent");
    }
    const Done done = std::move(found->done);
    checks_.erase(found);
    done(result, "");
  }
  begin(agent);
}

void PendingChecks::drop(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    if (const auto found = find(id); found != checks_.end()) {
      const auto joined = found->is_begun ? agents_.find(found->agent) : agents_.end();
      checks_.erase(found);
      if (joined != agents_.end()) {
        joined->second.link->end_lease(id, "its caller withdrew");
      }
    }
  }
  for (const auto& [agent, joined] : agents_) {
    begin(agent);
  }
}

void PendingChecks::end_all(const std::string& why) {
  const std::list<Check> ended = std::exchange(checks_, {});
  for (const Check& check : ended) {
    check.done({}, why);
  }
}

void PendingChecks::agent_left(std::uint64_t agent) {
  std::vector<Done> unanswered;
  std::erase_if(checks_, [&](Check& check) {
    if (check.agent == agent) {
      unanswered.push_back(std::move(check.done));
    }
    return check.agent == agent;
  });
  for (const Done& done : unanswered) {
    done({}, "the agent that compiled it left");
  }
}

}  // namespace cubind
