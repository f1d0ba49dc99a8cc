// Which of the connected agents can work on a job, and on which of its GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/jobs/failures.hpp"
#include "server/jobs/joined_agents.hpp"
#include "server/jobs/lent_gpus.hpp"
#include "server/jobs/open_jobs.hpp"

namespace cubind {

/// An agent, and the GPU that a job is measured on.
struct JobPlace {
  std::uint64_t agent = 0;
  const OfferedDevice* device = nullptr;  // null: a job that compiles. Valid until the agents change
};

struct JobPlaces {
  std::optional<JobPlace> free;  // the job can run there now
  bool any_exists = false;       // it could run somewhere, were it free
};

/// Answers by what the agents offer and what the open jobs hold at the time of the call; keeps nothing.
class Placement {
 public:
  /// `compile_limit`: compiles of one agent at a time.
  Placement(const JoinedAgents& agents, const OpenJobs& jobs, const Failures& failures, const LentGpus& lent,
            std::uint32_t compile_limit)
      : agents_(agents), jobs_(jobs), failures_(failures), lent_(lent), compile_limit_(compile_limit) {}

  /// A lent GPU comes first, because others may be in use. A job that was out of memory goes to a GPU with
  /// enough of it, if there is one (it is waited for), else to any. Agents that the job avoids come last:
  /// others are waited for.
  JobPlaces places(const OpenJob& job) const;
  /// Whether jobs that wait for an idle GPU hold every GPU that could measure for this one.
  bool waits_behind_foreign_use(const OpenJob& job) const;
  bool lent_gpu_is_free(const OpenJob& job) const;
  /// Whether an agent other than the one that holds it could take it now.
  bool another_is_free(const OpenJob& job) const;
  /// Whether another GPU of the job's class than the one that it is leased to offers so much for trials.
  bool more_room_exists(const OpenJob& job, std::uint64_t bytes) const;
  /// The first agent that has what is needed, whatever it is doing.
  std::optional<std::uint64_t> compiler_for(const ToolchainNeed& need) const;

 private:
  JobPlaces gpus(const OpenJob& job) const;
  JobPlaces compilers(const OpenJob& job) const;
  JobPlaces gpus(const OpenJob& job, bool avoided) const;
  JobPlaces compilers(const OpenJob& job, bool avoided) const;

  const JoinedAgents& agents_;
  const OpenJobs& jobs_;
  const Failures& failures_;
  const LentGpus& lent_;
  const std::uint32_t compile_limit_;
};

}  // namespace cubind
