// Which daemon on the database has a job, and which may take it.
#pragma once

#include <string>

#include "server/jobs/joined_agents.hpp"
#include "server/jobs/open_jobs.hpp"

namespace cubind {

class KernelLibrary;
class Store;

/// Answers also where only one daemon uses the store. Used on the job thread.
class JobOwners {
 public:
  JobOwners(Store& store, KernelLibrary& kernels) : store_(store), kernels_(kernels) {}

  /// Whether several daemons may use the store.
  bool is_shared() const;
  /// This daemon's id; empty if only one daemon uses the store.
  const std::string& self() const;
  /// The owner of a job without a lease: none, or this daemon if no other can give its callers the result.
  std::string resting_owner(const JobRow& row) const;
  /// Whether another living daemon has leased the job.
  bool is_elsewhere(const OpenJob& job) const;
  /// Whether no other daemon has the job, and this one knows the kernel or has to report that it is gone.
  bool may_run_here(const OpenJob& job) const;
  /// Whether the kernel exists here with this interface now.
  bool knows(const RecordQuestion& question) const;
  /// Whether agents of other daemons measure the class or take compiles.
  bool is_offered_elsewhere(JobKind kind, const Digest& device_class) const;
  /// Tells the other daemons what this one's agents can do.
  void tell_offer(const JoinedAgents& agents) const;

 private:
  Store& store_;
  KernelLibrary& kernels_;
};

}  // namespace cubind
