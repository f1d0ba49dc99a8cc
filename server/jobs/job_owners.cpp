#include "server/jobs/job_owners.hpp"

#include <algorithm>

#include "base/error.hpp"
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

bool JobOwners::may_run_here(const OpenJob& job) const {
  if (!is_shared()) {
    return true;
  }
  return job.change != 0 && !job.device.full.empty() && !is_elsewhere(job) &&
         (job.is_asked_here || knows(job.row.question) || store_.peers()->alive().empty());
}

bool JobOwners::is_offered_elsewhere(JobKind kind, const Digest& device_class) const {
  const auto may_take = [&](const Peer& peer) {
    return kind == v1::Job::TUNE ? std::ranges::count(peer.offer.classes, device_class) > 0
                                 : peer.offer.compiles;
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

}  // namespace cubind
