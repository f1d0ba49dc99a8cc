#include "server/jobs/dispatcher.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/jobs/grant.hpp"
#include "server/kernel_library.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

/// Sets a flag for as long as it lives.
class Raised {
 public:
  explicit Raised(bool& flag) : flag_(flag) { flag_ = true; }
  ~Raised() { flag_ = false; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  bool& flag_;
};

}  // namespace

void Dispatcher::dispatch() {
  // Jobs that watchers submit while jobs are placed are placed by the next tick.
  if (queue_.draining() || dispatching_ || !owners_.may_lease()) {
    return;
  }
  const Raised placing(dispatching_);
  const std::vector<std::string> ranked = order_.ranked_jobs();
  for (const std::string& id : ranked) {
    if (OpenJob* job = jobs_.find(id); job && !job->lease && !order_.is_measured_by_another(*job)) {
      assign(*job);
    }
  }
  move_to_a_lent_gpu();
  announce_next(ranked);
}

void Dispatcher::assign(OpenJob& job) {
  const JobTargets targets = placement_.targets(job);
  if (targets.free) {
    try_to_grant(job, *targets.free);
    return;
  }
  if (!targets.any_exists) {
    owners_.give_away(job);
  }
  if (!targets.any_exists && !owners_.is_offered_elsewhere(job.row.kind, job.row.question.device_class)) {
    mark_without_device(job);
    return;
  }
  const bool waits = targets.any_exists && placement_.waits_behind_foreign_use(job);
  const JobState state = waits ? v1::Job::WAITING_FOR_IDLE_GPU : v1::Job::QUEUED;
  if (std::exchange(job.row.state, state) != state) {
    jobs_.tell(job);
  }
}

void Dispatcher::mark_without_device(OpenJob& job) {
  if (job.row.state != v1::Job::NO_DEVICE && !agents_.is_expected()) {
    job.row.state = v1::Job::NO_DEVICE;
    jobs_.tell(job);
  }
}

void Dispatcher::try_to_grant(OpenJob& job, const JobTarget& target) {
  try {
    grant(job, target);
  } catch (const std::exception& fault) {
    // Any error is this job's alone: the queue goes on.
    const auto* error = dynamic_cast<const Error*>(&fault);
    if (error && error->code() == ErrorCode::Aborted) {
      owners_.lose(job, error->what());
      return;
    }
    log_warning("job " + job.row.id + " cannot be granted: " + fault.what());
    if (error && JobQueue::is_transient(*error)) {
      queue_.try_later(job);
    } else {
      queue_.fail(job, fault.what());
    }
  }
}

std::shared_ptr<const KernelEntry> Dispatcher::kernel_of(const OpenJob& job) const {
  auto kernel = context_.kernels.find(job.row.question.kernel);
  if (kernel->interface != job.row.question.interface) {
    throw Error(ErrorCode::FailedPrecondition, "kernel " + job.row.question.kernel,
                "its interface has changed since the job was submitted");
  }
  return kernel;
}

Lease Dispatcher::describe(const OpenJob& job, const JobTarget& target, const KernelEntry& kernel,
                           const IndexSnapshot& index) const {
  Lease lease;
  lease.job = job.row;
  lease.job.question = job.measured();
  // Its trials are shared with jobs of other numerics, namespaces and kernels: a retune of those has started
  // a new series for all.
  context_.store.read([&](StoreReader& reader) {
    lease.job.fact.set_series(
        std::max(lease.job.fact.series(), order_.last_series(reader, lease.job.question)));
  });
  lease.facts = target.device ? target.device->device.facts : job.device.facts;
  lease.gpu_uuid = target.device ? target.device->uuid : "";
  lease.lease_ms = static_cast<std::uint32_t>(context_.options.lease.count());
  lease.only_when_idle = order_.only_when_idle(job.row);
  lease.background = measures(job.row) && !job.is_awaited;
  fill_search(lease, kernel, target.device, context_.store, index);
  return lease;
}

void Dispatcher::grant(OpenJob& job, const JobTarget& target) {
  const auto kernel = kernel_of(job);
  const auto index = context_.index.snapshot();
  Lease lease = describe(job, target, *kernel, *index);
  if (target.device) {
    fill_known_work(lease, *kernel->spec, *target.device, context_.store, *index);
  }
  JobRow row = job.row;
  row.state = v1::Job::RUNNING;
  row.fact.set_fence(row.fact.fence() + 1);
  row.fact.set_series(lease.job.fact.series());
  row.hints = lease.job.hints;
  lease.job.state = row.state;
  lease.fence = row.fact.fence();
  lease.job.fact.set_fence(lease.fence);
  lease.id = "lease-" + row.id + "-" + std::to_string(row.fact.fence());
  // The fence is stored before an agent gets it: after a crash the next one is higher still.
  owners_.claim(job, row);
  job.row.fact.set_fence(row.fact.fence());
  const JoinedAgent& agent = agents_.joined().at(target.agent);
  const DriverVersion driver = target.device ? target.device->driver : DriverVersion{};
  // Read before the agent can begin: what its stages take is part of what the job takes.
  const auto now = context_.clock.steady_now();
  agent.link->grant(lease);

  job.row = std::move(row);
  leases_.begin(job, {.id = lease.id,
                      .agent = target.agent,
                      .gpu_uuid = lease.gpu_uuid,
                      .driver = driver,
                      .since = now,
                      .spec = kernel->spec,
                      .facts = lease.facts,
                      .link = agent.link,
                      .agent_key = agent.profile.key()});
  jobs_.tell(job);
}

void Dispatcher::move_to_a_lent_gpu() {
  const auto found = std::ranges::find_if(
      leases_.held(), [&](const auto& leased) { return placement_.should_move_to_lent_gpu(*leased.second); });
  if (found != leases_.held().end()) {
    OpenJob& job = *found->second;
    log_info("job " + job.row.id + " moves from " + job.lease->gpu_uuid +
             ", which is in use, to a GPU that is lent");
    leases_.withdraw(job, "a caller lends another GPU to the job");
    leases_.end(job, v1::Job::QUEUED);
    assign(job);
  }
}

void Dispatcher::announce_next(const std::vector<std::string>& ranked) {
  for (const auto& [lease_id, leased] : leases_.held()) {
    HeldLease& lease = *leased->lease;
    const auto agent = agents_.joined().find(lease.agent);
    if (lease.gpu_uuid.empty() || lease.next_is_announced || agent == agents_.joined().end()) {
      continue;
    }
    if (OpenJob* next = order_.next_behind(*leased, agent->second, ranked)) {
      lease.next_is_announced = next->is_announced = true;
      announce(*next, *leased, agent->second);
    }
  }
}

void Dispatcher::announce(const OpenJob& next, const OpenJob& leased, const JoinedAgent& agent) const {
  const auto device = std::ranges::find(agent.profile.devices, leased.lease->gpu_uuid, &OfferedDevice::uuid);
  if (device == agent.profile.devices.end()) {
    return;
  }
  try {
    const auto kernel = kernel_of(next);
    const auto index = context_.index.snapshot();
    Lease told = describe(next, {leased.lease->agent, &*device}, *kernel, *index);
    fill_artifact_keys(told, *kernel->spec, *device, context_.store, *index);
    agent.link->announce(told);
  } catch (const std::exception& error) {
    // The error is reported when the job is granted.
    log_info("job " + next.row.id + " is not announced: " + error.what());
  }
}

void Dispatcher::expire() {
  const auto now = context_.clock.steady_now();
  for (OpenJob* job : leases_.where([now](const OpenJob& job) { return job.lease->until <= now; })) {
    leases_.withdraw(*job, "the lease has expired");
    queue_.interrupt(*job, "its lease expired");
  }
  for (OpenJob* job : leases_.where([this](const OpenJob& job) { return has_stalled(job); })) {
    log_warning("job " + job->row.id + " has stored nothing for " +
                std::to_string(context_.options.longest_without_result.count()) + " minutes");
    queue_.take_back(*job, "its agent reported no result for too long");
  }
}

bool Dispatcher::has_stalled(const OpenJob& job) const {
  const auto silence = context_.clock.steady_now() - job.lease->last_result;
  return silence >= context_.options.longest_without_result &&
         (job.row.state != v1::Job::WAITING_FOR_IDLE_GPU || placement_.another_is_free(job));
}

}  // namespace cubind
