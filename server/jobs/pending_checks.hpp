// Checks of kernels: those that wait, and those that agents compile now.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "server/jobs/agent.hpp"

namespace cubind {

/// Each is answered once: by its agent, or with an error where that leaves before. An agent gets a few at a
/// time, and of these one caller never has all: a caller whose sources never
/// finish only delays itself.
class PendingChecks {
 public:
  using Done = std::function<void(const CheckOutcome&, const std::string& error)>;

  /// Gives the id by which the agent answers. `caller`: who shares what he gets with himself alone.
  std::string add(std::uint64_t agent, std::string caller, CheckOrder order, Done done);
  /// The next one that the agent shall compile, if it compiles less than `limit` (at least 2); it counts as
  /// begun.
  std::optional<CheckOrder> begin_next(std::uint64_t agent, unsigned limit);
  /// Nothing happens where the id is not known. False: another agent compiles it, and it goes on.
  bool finish(std::uint64_t agent, const std::string& id, const CheckOutcome& outcome);
  /// The caller has left. Returns the agent that compiles it; absent: none does.
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

  std::list<Check> checks_;  // in the order in which they came
  std::uint64_t last_ = 0;
};

}  // namespace cubind
