// Which daemon on the database has a job, and which may take it. The rows of open jobs are stored here: the
// database refuses what a daemon writes for a job that another one has changed meanwhile (Aborted); then the
// job is lost, and its row is read again.
#pragma once

#include <functional>
#include <string>

#include "server/jobs/agent_roster.hpp"
#include "server/jobs/leases.hpp"
#include "server/jobs/open_jobs.hpp"

namespace cubind {

class KernelLibrary;
class Store;
class StoreWriter;

/// Answers also where only one daemon uses the store. Used on the job thread.
class JobOwners {
 public:
  using Before = std::function<void(StoreWriter&)>;

  JobOwners(Store& store, KernelLibrary& kernels, Leases& leases)
      : store_(store), kernels_(kernels), leases_(leases) {}

  /// Whether several daemons may use the store.
  bool is_shared() const;
  /// This daemon's id; empty if only one daemon uses the store.
  const std::string& self() const;
  /// The owner of a job without a lease: none, or this daemon if no other can give its callers the result.
  std::string resting_owner(const JobRow& row) const;
  /// Whether another living daemon has leased the job.
  bool is_elsewhere(const OpenJob& job) const;
  /// Whether another living daemon has leased such a job.
  bool any_elsewhere(const OpenJobs& jobs, const std::function<bool(const OpenJob&)>& is_such) const;
  /// Whether no other daemon has the job, and this one knows the kernel or has to report that it is gone.
  bool may_run_here(const OpenJob& job) const;
  /// Whether the job fails if its kernel no longer exists here. Another daemon's job waits for one that knows
  /// its kernel.
  bool answers_for(const OpenJob& job) const;
  /// Whether leases can be stored now. A daemon alone on its store tries, and tells what refuses them.
  bool may_lease() const;
  /// Whether the kernel exists here with this interface now.
  bool knows(const RecordQuestion& question) const;
  /// Whether agents of other daemons measure the class or take compiles.
  bool is_offered_elsewhere(JobKind kind, const Digest& device_class) const;
  /// Tells the other daemons what this one's agents can do.
  void tell_offer(const JoinedAgents& agents) const;

  /// The job's row is as in the database.
  static void note(OpenJob& job, SharedJob& stored);
  static bool is_as_stored(const OpenJob& job) { return job.change != 0; }

  /// Each of these three throws Aborted if another daemon has changed the job since this one read it.
  /// Stores another row for the job, which stays with its daemon.
  void change(OpenJob& job, JobRow row);
  /// Stores another row for the job, which no daemon has from then on. `complete` runs in the same
  /// transaction. Its lease ends.
  void restart(OpenJob& job, JobRow& row, const Before& complete);
  /// Stores the row of a job that this daemon leases now.
  void claim(OpenJob& job, const JobRow& row);

  /// Stores the state of a job leased here, so that other daemons can report it to their callers, or a job's
  /// end. Returns false if the job is lost. It is not if the store takes no writes.
  bool keep_state(OpenJob& job);
  bool keep_end(OpenJob& job);
  /// Lets other daemons take the job, which no longer has a lease. If the store takes no writes, the job
  /// stays with this daemon.
  void release(OpenJob& job);
  /// Releases the job if no other daemon was to have it.
  void give_away(OpenJob& job);
  /// Ends the job's lease; the daemon reads the job's row again before it does anything else with the job.
  void lose(OpenJob& job, const std::string& why);

 private:
  /// `before` runs first in the transaction, and refuses it if another daemon has changed the job. If empty,
  /// that alone is checked.
  void write(OpenJob& job, const JobRow& row, const std::string& owner, const Before& before = {});
  /// Stores the row. Returns false if the job is lost.
  bool keep(OpenJob& job, const std::string& owner, const std::string& otherwise);

  Store& store_;
  KernelLibrary& kernels_;
  Leases& leases_;
};

}  // namespace cubind
