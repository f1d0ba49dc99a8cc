// Kernels that agents compile for CheckKernel, next to their leases.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "server/jobs/agent_roster.hpp"

namespace cubind {

/// Each check is answered once: by its agent, or with an error if the agent leaves first. An agent gets a few
/// checks at a time, never all from one caller: a caller whose sources never finish delays only itself.
class PendingChecks {
 public:
  using Done = std::function<void(const v1::CheckResult&, const std::string& error)>;

  explicit PendingChecks(const JoinedAgents& agents) : agents_(agents) {}

  /// Returns the id by which the agent answers. `caller`: the unit of fair sharing.
  std::string add(std::uint64_t agent, std::string caller, CheckOrder order, Done done);
  /// Ignores an unknown id. Throws InvalidArgument if another agent compiles the check, which then goes on.
  void finish(std::uint64_t agent, const std::string& id, const v1::CheckResult& result);
  /// Drops checks whose callers have left: their agents stop compiling them at once, and `done` is not
  /// called.
  void drop(const std::vector<std::string>& ids);
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
  /// Gives the agent checks while it compiles fewer than it has compile jobs (at least 2).
  void begin(std::uint64_t agent);
  /// The agent's next check; null: none, or it has its fill.
  Check* next_of(std::uint64_t agent, unsigned limit);
  std::list<Check>::iterator find(const std::string& id);
  unsigned begun_of(std::uint64_t agent, const std::string* caller) const;

  const JoinedAgents& agents_;
  std::list<Check> checks_;  // in order of arrival
  std::uint64_t last_ = 0;
};

}  // namespace cubind
