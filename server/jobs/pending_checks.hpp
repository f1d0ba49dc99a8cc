// Checks of kernels that agents compile now.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "server/jobs/agent.hpp"

namespace cubind {

/// Each is answered once: by its agent, or with an error where that leaves before.
class PendingChecks {
 public:
  using Done = std::function<void(const CheckOutcome&, const std::string& error)>;

  /// Gives the id by which the agent answers.
  std::string add(std::uint64_t agent, Done done);
  /// Nothing happens where the id is not known.
  void finish(const std::string& id, const CheckOutcome& outcome);
  void agent_left(std::uint64_t agent);

 private:
  struct Check {
    std::uint64_t agent = 0;
    Done done;
  };
  std::map<std::string, Check> checks_;  // by id
  std::uint64_t last_ = 0;
};

}  // namespace cubind
