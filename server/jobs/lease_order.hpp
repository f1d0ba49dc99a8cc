// The order in which open jobs are leased, and which of them wait for others.
#pragma once

#include <string>
#include <vector>

#include "server/jobs/agent_roster.hpp"
#include "server/jobs/job_owners.hpp"
#include "server/jobs/open_jobs.hpp"
#include "server/lookup/index.hpp"

namespace cubind {

class StoreReader;

/// Used on the job thread.
class LeaseOrder {
 public:
  LeaseOrder(const OpenJobs& jobs, const Leases& leases, const JobOwners& owners, const Index& index,
             KernelLibrary& kernels, const Clock& clock)
      : jobs_(jobs), leases_(leases), owners_(owners), index_(index), kernels_(kernels), clock_(clock) {}

  /// The jobs without a lease by rank and age; callers take turns with their compiles.
  std::vector<std::string> ranked_jobs() const;
  /// Whether a leased job measures trials that this one shares, because both have the same kernel or source.
  /// Then this job waits and starts with the other's results.
  bool is_measured_by_another(const OpenJob& job) const;
  /// The first of the ranked jobs that may be leased next for the leased job's GPU by its agent and was not
  /// announced; null: none.
  OpenJob* next_behind(const OpenJob& leased, const JoinedAgent& agent,
                       const std::vector<std::string>& ranked) const;
  /// Whether the job runs only on an idle GPU: it measures a record again or replaces a provisional one, and
  /// no caller asked for it.
  bool only_when_idle(const JobRow& row) const;
  /// The last series of the trials that jobs for this question share with other jobs.
  std::uint32_t last_series(StoreReader& reader, const RecordQuestion& question) const;

 private:
  bool is_queued(const OpenJob& job) const;
  /// source_digest() of a kernel; zero if the kernel no longer exists.
  Digest source_of(const std::string& kernel) const;
  /// Jobs of a smaller rank are leased first, and of equal rank the older one. Among tuning jobs, those that
  /// a caller waits for come first.
  int rank(const OpenJob& job) const;

  const OpenJobs& jobs_;
  const Leases& leases_;
  const JobOwners& owners_;
  const Index& index_;
  KernelLibrary& kernels_;
  const Clock& clock_;
};

}  // namespace cubind
