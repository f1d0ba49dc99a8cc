// Finds the connected agents that can work on a job, and their GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/jobs/agent_roster.hpp"
#include "server/jobs/failures.hpp"
#include "server/jobs/leases.hpp"
#include "server/jobs/lent_gpus.hpp"

namespace cubind {

/// An agent and the GPU that a job is measured on.
struct JobTarget {
  std::uint64_t agent = 0;
  const OfferedDevice* device = nullptr;  // null for a job that compiles. Valid until the agents change
};

struct JobTargets {
  std::optional<JobTarget> free;  // the job can run there now
  bool any_exists = false;        // the job could run somewhere that is busy or free
};

/// Answers from the agents' offers and the open jobs' leases at the time of the call; has no state.
class Placement {
 public:
  /// `compile_limit`: compiles per agent at a time.
  Placement(const JoinedAgents& agents, const Leases& leases, const Failures& failures, const LentGpus& lent,
            std::uint32_t compile_limit)
      : agents_(agents), leases_(leases), failures_(failures), lent_(lent), compile_limit_(compile_limit) {}

  /// Prefers a lent GPU, because others may be in use. A job that was out of memory waits for a GPU with
  /// enough memory, if one exists, else it goes to any GPU. A job waits for other agents before it goes to
  /// one that it avoids.
  JobTargets targets(const OpenJob& job) const;
  /// Whether jobs that wait for an idle GPU hold every GPU that could measure for this one.
  bool waits_behind_foreign_use(const OpenJob& job) const;
  /// Whether a leased job that waits for its GPU to be idle could measure on a lent one now.
  bool should_move_to_lent_gpu(const OpenJob& job) const;
  /// Whether an agent other than the one that holds the job could take it now.
  bool another_is_free(const OpenJob& job) const;
  /// Whether another GPU of the job's class offers `bytes` for trials.
  bool more_room_exists(const OpenJob& job, std::uint64_t bytes) const;
  /// The first agent that can compile it, busy or not.
  std::optional<std::uint64_t> compiler_for(const ToolchainNeed& need) const;

 private:
  JobTargets gpus(const OpenJob& job, bool avoided) const;
  JobTargets compilers(const OpenJob& job, bool avoided) const;

  const JoinedAgents& agents_;
  const Leases& leases_;
  const Failures& failures_;
  const LentGpus& lent_;
  const std::uint32_t compile_limit_;
};

}  // namespace cubind
