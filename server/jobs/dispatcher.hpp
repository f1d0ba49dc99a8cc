// Gives leases to agents, and takes those that are over.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/jobs/agent_roster.hpp"
#include "server/jobs/job_queue.hpp"
#include "server/jobs/placement.hpp"

namespace cubind {

class IndexSnapshot;
struct KernelEntry;

/// Used on the job thread.
class Dispatcher {
 public:
  Dispatcher(const JobContext& context, const AgentRoster& agents, OpenJobs& jobs, Leases& leases,
             JobOwners& owners, const LeaseOrder& order, const Placement& placement, JobQueue& queue)
      : context_(context),
        agents_(agents),
        jobs_(jobs),
        leases_(leases),
        owners_(owners),
        order_(order),
        placement_(placement),
        queue_(queue) {}

  /// Leases the jobs that can be leased now, by rank and age.
  void dispatch();
  /// Ends leases that no message has renewed, or that have stored nothing for too long.
  void expire();

 private:
  void assign(OpenJob& job);
  void mark_without_device(OpenJob& job);
  void try_to_grant(OpenJob& job, const JobTarget& target);
  void grant(OpenJob& job, const JobTarget& target);
  /// The kernel that the job was submitted for. Throws FailedPrecondition if its interface has changed.
  std::shared_ptr<const KernelEntry> kernel_of(const OpenJob& job) const;
  /// The lease of a job without the known trials, the lease's id and its terms.
  Lease describe(const OpenJob& job, const JobTarget& target, const KernelEntry& kernel,
                 const IndexSnapshot& index) const;
  /// Moves a leased job that waits for its GPU to be idle to a lent GPU that no other job holds.
  void move_to_a_lent_gpu();
  /// Tells the agents which jobs come next on their GPUs, so that they can compile for these ahead of time.
  void announce_next(const std::vector<std::string>& ranked);
  void announce(const OpenJob& next, const OpenJob& leased, const JoinedAgent& agent) const;
  bool has_stalled(const OpenJob& job) const;

  const JobContext& context_;
  const AgentRoster& agents_;
  OpenJobs& jobs_;
  Leases& leases_;
  JobOwners& owners_;
  const LeaseOrder& order_;
  const Placement& placement_;
  JobQueue& queue_;
  bool dispatching_ = false;
};

}  // namespace cubind
