// Checks of kernels that wait or that agents are compiling.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "server/jobs/agent.hpp"

namespace cubind {

/// Each check is answered once: by its agent, or with an error if the agent leaves first. An agent gets a few
/// checks at a time, never all from one caller: a caller whose sources never finish delays only itself.
class PendingChecks {
 public:
  using Done = std::function<void(const v1::CheckResult&, const std::string& error)>;

  /// Returns the id by which the agent answers. `caller`: the unit of fair sharing.
  std::string add(std::uint64_t agent, std::string caller, CheckOrder order, Done done);
  /// Returns the agent's next check and marks it as begun, if the agent compiles fewer than `limit` (at least
  /// 2).
  std::optional<CheckOrder> begin_next(std::uint64_t agent, unsigned limit);
  /// Ignores an unknown id. Returns false if another agent compiles the check, which then goes on.
  bool finish(std::uint64_t agent, const std::string& id, const v1::CheckResult& result);
  /// Drops the check of a caller that has left. Returns the agent that compiles it, if any.
  std::optional<std::uint64_t> drop(const std::string& id);
  void agent_left(std::uint64_t agent);
  void end_all(const std::string& why);

 private:
  struct Check {
    std::uint64_t agent = 0;
    std::string caller;
    CheckOrder order;
    Done done;
    bool is_begun = false;
  };
  std::list<Check>::iterator find(const std::string& id);
  unsigned begun_of(std::uint64_t agent, const std::string* caller) const;

  std::list<Check> checks_;  // in order of arrival
  std::uint64_t last_ = 0;
};

}  // namespace cubind
