// Agents come and go, and jobs are leased to them.
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/jobs/grant.hpp"
#include "server/jobs/scheduler.hpp"
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

std::vector<OpenJob*> held_by(const OpenJobs& jobs, std::uint64_t agent) {
  return jobs.leased_where([agent](const OpenJob& job) { return job.lease->agent == agent; });
}

}  // namespace

std::uint64_t Scheduler::agent_joined(AgentProfile profile, AgentLink& link) {
  const std::uint64_t id = ++last_agent_;
  agents_[id] = {std::move(profile), &link};
  agent_expected_until_ = {};
  if (draining_) {
    link.drain();
  }
  lent_.tell(agents_[id]);
  agents_changed();
  return id;
}

void Scheduler::agent_devices(std::uint64_t agent, std::vector<OfferedDevice> devices) {
  const auto found = agents_.find(agent);
  if (found == agents_.end()) {
    return;
  }
  found->second.profile.devices = std::move(devices);
  lent_.tell(found->second);
  for (OpenJob* job : held_by(jobs_, agent)) {
    const bool is_offered = std::ranges::any_of(found->second.profile.devices, [&](const OfferedDevice& one) {
      return one.uuid == job->lease->gpu_uuid && one.device.digest == job->row.question.device_class;
    });
    if (!job->lease->gpu_uuid.empty() && !is_offered) {
      take_back(*job, "the agent no longer offers its GPU");
    }
  }
  agents_changed();
}

void Scheduler::agent_left(std::uint64_t agent, const std::string& reason) {
  const bool is_leaving = agents_.contains(agent) && agents_.at(agent).is_leaving;
  agents_.erase(agent);
  for (OpenJob* job : held_by(jobs_, agent)) {
    is_leaving ? hand_on(*job) : requeue(*job, reason);
  }
  checks_.agent_left(agent);
  agents_changed();
}

void Scheduler::agent_leaves(std::uint64_t agent) {
  if (const auto found = agents_.find(agent); found != agents_.end()) {
    log_info("agent " + found->second.profile.id + " is leaving");
    found->second.is_leaving = true;
    agents_changed();
  }
}

void Scheduler::avoid(std::uint64_t agent) {
  if (const auto found = agents_.find(agent); found != agents_.end()) {
    for (OpenJob* job : held_by(jobs_, agent)) {
      job->avoided.insert(found->second.profile.key());
    }
  }
}

bool Scheduler::may_find_device(const Digest& device_class) const {
  const auto is_asked = [&](const OfferedDevice& device) {
    return device.device.digest == device_class && may_measure(device);
  };
  return agent_expected() || std::ranges::any_of(devices_of(agents_), is_asked) ||
         owners_.is_offered_elsewhere(v1::Job::TUNE, device_class);
}

bool Scheduler::has_agent(const AgentProfile& like) const {
  return std::ranges::any_of(agents_,
                             [&](const auto& agent) { return agent.second.profile.key() == like.key(); });
}

void Scheduler::agents_changed() {
  owners_.tell_offer(agents_);
  std::ranges::for_each(jobs_.all(), [this](OpenJob& job) { find_device(job); });
  for (const auto& listener : agent_listeners_) {
    listener();
  }
  dispatch();
}

bool Scheduler::heartbeat(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence) {
  return leased_job(agent, lease_id, fence) != nullptr;
}

std::string Scheduler::check(CheckOrder order, const std::string& caller, PendingChecks::Done done) {
  const auto agent = placement_.compiler_for(order.needs);
  if (!agent) {
    done({}, "no agent is connected that compiles for " + order.needs.architecture +
                 " (the daemon's log says why): " + no_toolchain_because(order.needs, agents()));
    return "";
  }
  std::string id = checks_.add(*agent, caller, std::move(order), std::move(done));
  begin_checks(*agent);
  return id;
}

void Scheduler::begin_checks(std::uint64_t agent) {
  const auto found = agents_.find(agent);
  if (found == agents_.end()) {
    return;
  }
  const JoinedAgent& joined = found->second;
  while (const auto order = checks_.begin_next(agent, joined.profile.compile_jobs)) {
    joined.link->check(*order);
  }
}

void Scheduler::drop_checks(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    const auto agent = checks_.drop(id);
    if (const auto found = agent ? agents_.find(*agent) : agents_.end(); found != agents_.end()) {
      found->second.link->end_lease(id, "its caller withdrew");
    }
  }
  for (const auto& [agent, joined] : agents_) {
    begin_checks(agent);
  }
}

void Scheduler::check_done(std::uint64_t agent, const std::string& id, const v1::CheckResult& result) {
  if (!checks_.finish(agent, id, result)) {
    throw Error(ErrorCode::InvalidArgument, "check.id", id + " was given to another agent");
  }
  begin_checks(agent);
}

void Scheduler::dispatch() {
  // Jobs that watchers submit while jobs are placed are placed by the next tick.
  if (draining_ || dispatching_ || (owners_.is_shared() && store_.read_only_reason())) {
    return;
  }
  const Raised placing(dispatching_);
  for (const std::string& id : order_.ranked_jobs()) {
    if (OpenJob* job = jobs_.find(id); job && !job->lease && !order_.is_measured_by_another(*job)) {
      assign(*job);
    }
  }
  move_to_a_lent_gpu();
  announce_next();
}

void Scheduler::assign(OpenJob& job) {
  const JobTargets targets = placement_.targets(job);
  if (targets.free) {
    try_to_grant(job, *targets.free);
    return;
  }
  if (!targets.any_exists && !job.owner.empty() && job.owner == owners_.self() &&
      !job.row.fact.from_scratch()) {
    release(job);
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

void Scheduler::try_to_grant(OpenJob& job, const JobTarget& target) {
  try {
    grant(job, target);
  } catch (const std::exception& fault) {
    // Any error is this job's alone: the queue goes on.
    const auto* error = dynamic_cast<const Error*>(&fault);
    if (error && error->code() == ErrorCode::Aborted) {
      lose(job, error->what());
      return;
    }
    log_warning("job " + job.row.id + " cannot be granted: " + fault.what());
    if (error && is_passing(*error)) {
      try_later(job);
    } else {
      end(job, v1::Job::FAILED, fault.what(), nullptr);
    }
  }
}

void Scheduler::try_later(OpenJob& job) { job.not_before = clock_.steady_now() + options_.retry_step * 4; }

void Scheduler::mark_without_device(OpenJob& job) {
  if (job.row.state == v1::Job::NO_DEVICE || clock_.steady_now() < agent_expected_until_) {
    return;
  }
  job.row.state = v1::Job::NO_DEVICE;
  jobs_.tell(job);
}

std::shared_ptr<const KernelEntry> Scheduler::kernel_of(const OpenJob& job) {
  auto kernel = kernels_.find(job.row.question.kernel);
  if (kernel->interface != job.row.question.interface) {
    throw Error(ErrorCode::FailedPrecondition, "kernel " + job.row.question.kernel,
                "its interface has changed since the job was submitted");
  }
  return kernel;
}

Lease Scheduler::describe(const OpenJob& job, const JobTarget& target, const KernelEntry& kernel,
                          const IndexSnapshot& index) {
  Lease lease;
  lease.job = job.row;
  lease.job.question = job.measured();
  // Its trials are shared with jobs of other numerics, namespaces and kernels: a retune of those has started
  // a new series for all.
  store_.read([&](StoreReader& reader) {
    lease.job.fact.set_series(std::max(lease.job.fact.series(), last_series(reader, lease.job.question)));
  });
  lease.facts = target.device ? target.device->device.facts : job.device.facts;
  lease.gpu_uuid = target.device ? target.device->uuid : "";
  lease.lease_ms = static_cast<std::uint32_t>(options_.lease.count());
  lease.only_when_idle = order_.only_when_idle(job.row);
  lease.background = job.row.kind == v1::Job::TUNE && !job.is_awaited;
  fill_search(lease, kernel, target.device, store_, index);
  return lease;
}

void Scheduler::grant(OpenJob& job, const JobTarget& target) {
  const auto kernel = kernel_of(job);
  const auto index = index_.snapshot();
  Lease lease = describe(job, target, *kernel, *index);
  if (target.device) {
    fill_known_work(lease, *kernel->spec, *target.device, store_, *index);
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
  std::uint64_t change = 0;
  store_.write([&](StoreWriter& writer) {
    writer.claim_job(row.id, job.change, owners_.self());
    change = writer.put_job(row, owners_.self());
  });
  job.change = change;
  job.owner = owners_.self();
  job.row.fact.set_fence(row.fact.fence());
  // Read before the agent can begin: what its stages take is part of what the job takes.
  const auto now = clock_.steady_now();
  agents_.at(target.agent).link->grant(lease);

  job.row = std::move(row);
  const DriverVersion driver = target.device ? target.device->driver : DriverVersion{};
  jobs_.begin_lease(job, {lease.id, target.agent, lease.gpu_uuid, driver, now, now + options_.lease,
                          kernel->spec, lease.facts, now});
  jobs_.tell(job);
}

void Scheduler::announce_next() {
  for (const auto& [lease_id, leased] : jobs_.leased()) {
    HeldLease& lease = *leased->lease;
    OpenJob* next =
        lease.gpu_uuid.empty() || lease.next_is_announced ? nullptr : order_.next_behind(*leased, agents_);
    if (next == nullptr) {
      continue;
    }
    lease.next_is_announced = next->is_announced = true;
    const JoinedAgent& agent = agents_.at(lease.agent);
    const auto device = std::ranges::find(agent.profile.devices, lease.gpu_uuid, &OfferedDevice::uuid);
    if (device == agent.profile.devices.end()) {
      continue;
    }
    try {
      const auto kernel = kernel_of(*next);
      const auto index = index_.snapshot();
      Lease told = describe(*next, {lease.agent, &*device}, *kernel, *index);
      fill_artifact_keys(told, *kernel->spec, *device, store_, *index);
      agent.link->announce(told);
    } catch (const std::exception& error) {
      // The error is reported when the job is granted.
      log_info("job " + next->row.id + " is not announced: " + error.what());
    }
  }
}

OpenJob* Scheduler::leased_job(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence) {
  OpenJob* job = jobs_.find_lease(lease_id);
  if (job && job->row.fact.fence() == fence && job->lease->agent == agent) {
    job->lease->until = clock_.steady_now() + options_.lease;
    return job;
  }
  if (const auto found = agents_.find(agent); found != agents_.end() && !lease_id.empty()) {
    found->second.link->end_lease(lease_id,
                                  "the lease is over or its fence " + std::to_string(fence) + " is stale");
  }
  return nullptr;
}

}  // namespace cubind
