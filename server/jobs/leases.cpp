#include "server/jobs/leases.hpp"

#include <utility>

#include "server/jobs/agent.hpp"

namespace cubind {

std::vector<OpenJob*> Leases::where(const std::function<bool(const OpenJob&)>& condition) const {
  std::vector<OpenJob*> found;
  for (const auto& [lease_id, job] : held_) {
    if (condition(*job)) {
      found.push_back(job);
    }
  }
  return found;
}

std::vector<OpenJob*> Leases::of_agent(std::uint64_t agent) const {
  return where([agent](const OpenJob& job) { return job.lease->agent == agent; });
}

std::uint32_t Leases::compiles_of(std::uint64_t agent) const {
  const auto found = compiles_.find(agent);
  return found == compiles_.end() ? 0 : found->second;
}

std::string Leases::gpu_state(const std::string& uuid) const {
  for (const auto& [lease_id, job] : held_) {
    if (job->lease->gpu_uuid == uuid) {
      return job->row.state == v1::Job::WAITING_FOR_IDLE_GPU ? "waiting_for_idle_gpu" : "tuning";
    }
  }
  return "idle";
}

void Leases::begin(OpenJob& job, HeldLease lease) {
  end(job);
  job.refusal.clear();
  job.waits_because.clear();
  job.in_use_lent = job.waits_lent = false;
  held_[lease.id] = &job;
  if (lease.gpu_uuid.empty()) {
    ++compiles_[lease.agent];
  } else {
    held_gpus_.insert(lease.gpu_uuid);
  }
  lease.until = lease.since + length_;
  lease.last_result = lease.since;
  job.lease = std::move(lease);
}

void Leases::end(OpenJob& job) {
  if (!job.lease) {
    return;
  }
  job.add_lease(job.row.shown(), clock_.steady_now());
  held_.erase(job.lease->id);
  if (!job.lease->gpu_uuid.empty()) {
    held_gpus_.erase(held_gpus_.find(job.lease->gpu_uuid));
  } else if (--compiles_[job.lease->agent] == 0) {
    compiles_.erase(job.lease->agent);
  }
  job.lease.reset();
}

void Leases::end(OpenJob& job, JobState next) {
  end(job);
  job.stage.clear();
  job.row.state = next;
}

void Leases::withdraw(OpenJob& job, const std::string& reason) {
  if (job.lease) {
    job.lease->link->end_lease(job.lease->id, reason);
    end(job);
  }
}

OpenJob* Leases::renew(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence) {
  const auto found = held_.find(lease_id);
  if (found == held_.end() || found->second->row.fact.fence() != fence ||
      found->second->lease->agent != agent) {
    return nullptr;
  }
  found->second->lease->until = clock_.steady_now() + length_;
  return found->second;
}

}  // namespace cubind
