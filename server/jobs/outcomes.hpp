// The results of leased jobs: stored here, they decide how the jobs go on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "schemas/facts.pb.h"
#include "server/jobs/job_queue.hpp"
#include "server/jobs/placement.hpp"
#include "server/jobs/submissions.hpp"

namespace cubind {

/// Used on the job thread.
class Outcomes {
 public:
  Outcomes(const JobContext& context, Leases& leases, JobOwners& owners, const Placement& placement,
           JobQueue& queue, Submissions& submissions)
      : context_(context),
        leases_(leases),
        owners_(owners),
        placement_(placement),
        queue_(queue),
        submissions_(submissions) {}

  /// The job is leased to the agent. If this returns true, the batch is stored, in one transaction; else the
  /// lease is over.
  bool store_batch(OpenJob& job, const JoinedAgent& agent, WorkBatch& batch);
  /// Takes the end of the job's lease. Returns false if the result is not acknowledged.
  bool finish(OpenJob& job, const JoinedAgent& agent, WorkResult& result);

  /// The GPU's state while its last samples were taken; empty: not known.
  v1::Conditions conditions_of(const std::string& gpu_uuid) const;
  /// How many records replaced one with another configuration since the daemon's start.
  std::uint64_t winner_changes() const { return winner_changes_; }
  /// `listener` is called for every stored artifact.
  void on_artifact(std::function<void(const ArtifactRow&)> listener) {
    listeners_.push_back(std::move(listener));
  }

 private:
  /// Rejects a report that does not fit the job: nothing is stored, and other agents come first from now on.
  void refuse(OpenJob& job, const JoinedAgent& agent, const Error& error);
  void complete(OpenJob& job, WorkResult& result);
  /// Swaps the index and returns the job's record.
  RecordPtr publish(const RecordRow& record);
  /// Keeps the earlier search in the record if the job chose among its best and nothing has changed since.
  void keep_search(const OpenJob& job, RecordRow& record) const;
  /// Queues the job again, once, for another GPU with enough room. Returns false if there is no such GPU.
  bool move_to_more_room(OpenJob& job, const v1::JobResult& told);
  /// Queues the job again for the smaller problem that fits, as found by the agent.
  void measure_smaller(OpenJob& job, const WorkResult& result);

  const JobContext& context_;
  Leases& leases_;
  JobOwners& owners_;
  const Placement& placement_;
  JobQueue& queue_;
  Submissions& submissions_;
  std::uint64_t winner_changes_ = 0;
  std::map<std::string, v1::Conditions> conditions_;  // by GPU
  std::vector<std::function<void(const ArtifactRow&)>> listeners_;
};

}  // namespace cubind
