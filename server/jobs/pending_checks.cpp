#include "server/jobs/pending_checks.hpp"

#include <algorithm>
#include <utility>

namespace cubind {

std::string PendingChecks::add(std::uint64_t agent, std::string caller, CheckOrder order, Done done) {
  order.id = "check-" + std::to_string(++last_);
  std::string id = order.id;
  checks_.push_back({agent, std::move(caller), std::move(order), std::move(done), false});
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

std::optional<CheckOrder> PendingChecks::begin_next(std::uint64_t agent, unsigned limit) {
  limit = std::max(limit, 2U);
  if (begun_of(agent, nullptr) >= limit) {
    return std::nullopt;
  }
  Check* next = nullptr;
  unsigned fewest = limit - 1;
  for (Check& check : checks_) {
    if (check.is_begun || check.agent != agent || (next && next->caller == check.caller)) {
      continue;
    }
    if (const unsigned begun = begun_of(agent, &check.caller); begun < fewest) {
      fewest = begun;
      next = &check;
    }
  }
  if (!next) {
    return std::nullopt;
  }
  next->is_begun = true;
  CheckOrder order = std::move(next->order);
  next->order = CheckOrder();
  next->order.id = order.id;
  return order;
}

bool PendingChecks::finish(std::uint64_t agent, const std::string& id, const v1::CheckResult& result) {
  const auto found = find(id);
  if (found == checks_.end()) {
    return true;
  }
  if (found->agent != agent) {
    return false;
  }
  const Done done = std::move(found->done);
  checks_.erase(found);
  done(result, "");
  return true;
}

std::optional<std::uint64_t> PendingChecks::drop(const std::string& id) {
  const auto found = find(id);
  if (found == checks_.end()) {
    return std::nullopt;
  }
  const auto agent = found->is_begun ? std::optional(found->agent) : std::nullopt;
  checks_.erase(found);
  return agent;
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
