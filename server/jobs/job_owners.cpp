#include "server/jobs/job_owners.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/kernel_library.hpp"
#include "server/store/peers.hpp"
#include "server/store/store.hpp"

namespace cubind {

bool JobOwners::is_shared() const { return store_.peers() != nullptr; }

const std::string& JobOwners::self() const {
  static const std::string nobody;
  return is_shared() ? store_.peers()->self() : nobody;
}

std::string JobOwners::resting_owner(const JobRow& row) const {
  return row.fact.from_scratch() ? self() : "";
}

bool JobOwners::is_elsewhere(const OpenJob& job) const {
  return !job.owner.empty() && job.owner != self() && !store_.peers()->is_gone(job.owner);
}

bool JobOwners::any_elsewhere(const OpenJobs& jobs,
                              const std::function<bool(const OpenJob&)>& is_such) const {
  return is_shared() && std::ranges::any_of(jobs.all(), [&](const OpenJob& job) {
           return is_elsewhere(job) && is_such(job);
         });
}

bool JobOwners::may_run_here(const OpenJob& job) const {
  if (!is_shared()) {
    return true;
  }
  return is_as_stored(job) && !job.device.full.empty() && !is_elsewhere(job) &&
         (job.is_asked_here || knows(job.row.question) || store_.peers()->alive().empty());
}

bool JobOwners::answers_for(const OpenJob& job) const {
  return may_run_here(job) && (job.is_asked_here || !is_shared());
}

bool JobOwners::may_lease() const { return !is_shared() || !store_.read_only_reason(); }

bool JobOwners::is_offered_elsewhere(JobKind kind, const Digest& device_class) const {
  const auto may_take = [&](const Peer& peer) {
    return measures(kind) ? std::ranges::count(peer.offer.classes, device_class) > 0 : peer.offer.compiles;
  };
  return is_shared() && std::ranges::any_of(store_.peers()->alive(), may_take);
}

void JobOwners::tell_offer(const JoinedAgents& agents) const {
  if (!is_shared()) {
    return;
  }
  Offer offer;
  offer.compiles = !agents.empty();
  for (const OfferedDevice& device : devices_of(agents)) {
    if (may_measure(device) && std::ranges::count(offer.classes, device.device.digest) == 0) {
      offer.classes.push_back(device.device.digest);
    }
  }
  store_.peers()->offer(offer);
}

bool JobOwners::knows(const RecordQuestion& question) const {
  try {
    return kernels_.find(question.kernel)->interface == question.interface;
  } catch (const Error&) {
    return false;
  }
}

void JobOwners::note(OpenJob& job, SharedJob& stored) {
  job.change = stored.change;
  job.owner = std::move(stored.owner);
}

void JobOwners::write(OpenJob& job, const JobRow& row, const std::string& owner, const Before& before) {
  SharedJob stored;
  stored.owner = owner;
  store_.write([&](StoreWriter& writer) {
    before ? before(writer) : writer.require_unchanged(row.id, job.change);
    stored.change = writer.put_job(row, owner);
  });
  note(job, stored);
}

void JobOwners::change(OpenJob& job, JobRow row) {
  write(job, row, job.owner);
  job.row = std::move(row);
}

void JobOwners::restart(OpenJob& job, JobRow& row, const Before& complete) {
  // The holder of its lease writes nothing more. A job that was never leased still gets its hints.
  row.fact.set_fence(row.fact.fence() + (row.fact.fence() > 0 ? 1 : 0));
  write(job, row, resting_owner(row), [&](StoreWriter& writer) {
    writer.require_unchanged(row.id, job.change);
    complete(writer);
  });
  leases_.withdraw(job, "a Tune asks for a new measurement of its problem");
}

void JobOwners::claim(OpenJob& job, const JobRow& row) {
  write(job, row, self(), [&](StoreWriter& writer) { writer.claim_job(row.id, job.change, self()); });
}

bool JobOwners::keep(OpenJob& job, const std::string& owner, const std::string& otherwise) {
  try {
    write(job, job.row, owner);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Aborted) {
      lose(job, error.what());
      return false;
    }
    log_warning("job " + job.row.id + ": " + otherwise + ": " + error.what());
  }
  return true;
}

bool JobOwners::keep_state(OpenJob& job) {
  return !is_shared() || keep(job, self(), "its state is not stored");
}

// If the store takes no writes, the job is over for all who wait. It is still open there, and begins again
// with the next start of the daemon, or as soon as a shared store is back.
bool JobOwners::keep_end(OpenJob& job) { return keep(job, "", "its end is not stored"); }

void JobOwners::release(OpenJob& job) {
  if (is_shared() && is_as_stored(job)) {
    keep(job, resting_owner(job.row), "it stays this daemon's");
  }
}

void JobOwners::give_away(OpenJob& job) {
  if (!job.owner.empty() && job.owner == self() && resting_owner(job.row).empty()) {
    release(job);
  }
}

void JobOwners::lose(OpenJob& job, const std::string& why) {
  if (job.lease) {
    log_info("job " + job.row.id + " is no longer this daemon's: " + why);
    leases_.withdraw(job, why);
  }
  job.stage.clear();
  job.change = 0;
}

}  // namespace cubind
