// How leases end without a result, and where their jobs go then.
#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "server/jobs/scheduler.hpp"

namespace cubind {
namespace {

constexpr std::chrono::seconds kLongestRetry{30};

}  // namespace

void Scheduler::requeue(OpenJob& job, const std::string& reason) {
  jobs_.end_lease(job);
  job.row.fact.set_interruptions(job.row.fact.interruptions() + 1);
  job.stage.clear();
  if (job.row.fact.interruptions() >= options_.interruption_limit) {
    end(job, v1::Job::FAILED,
        "interrupted " + std::to_string(job.row.fact.interruptions()) +
            " times in a row, the last time because " + reason,
        nullptr);
    return;
  }
  const auto step = options_.retry_step * (1u << std::min(job.row.fact.interruptions() - 1, 10u));
  job.not_before = clock_.steady_now() + std::min<std::chrono::milliseconds>(step, kLongestRetry);
  job.row.state = v1::Job::QUEUED;
  log_info("job " + job.row.id + " is queued again: " + reason);
  release(job);
  jobs_.tell(job);
}

void Scheduler::hand_on(OpenJob& job) {
  jobs_.end_lease(job);
  job.stage.clear();
  job.row.state = v1::Job::QUEUED;
  log_info("job " + job.row.id + " is queued again: its agent leaves");
  release(job);
  jobs_.tell(job);
}

void Scheduler::wait_for_idle_gpu(OpenJob& job) {
  jobs_.end_lease(job);
  job.stage.clear();
  job.row.state = v1::Job::WAITING_FOR_IDLE_GPU;
  const auto later = clock_.steady_now() + options_.idle_retry;
  for (OpenJob& other : jobs_.all()) {
    const bool same_class = other.row.question.device_class == job.row.question.device_class;
    if (!other.lease && same_class && order_.only_when_idle(other.row)) {
      other.not_before = std::max(other.not_before, later);
    }
  }
  release(job);
  jobs_.tell(job);
}

void Scheduler::expire_leases() {
  const auto now = clock_.steady_now();
  for (OpenJob* job : jobs_.leased_where([now](const OpenJob& job) { return job.lease->until <= now; })) {
    end_lease_at_agent(*job, "the lease has expired");
    requeue(*job, "its lease expired");
  }
  end_stalled_leases();
}

void Scheduler::end_lease_at_agent(const OpenJob& job, const std::string& reason) {
  if (const auto agent = agents_.find(job.lease->agent); agent != agents_.end()) {
    agent->second.link->end_lease(job.lease->id, reason);
  }
}

void Scheduler::take_back(OpenJob& job, const std::string& reason) {
  if (const auto agent = agents_.find(job.lease->agent); agent != agents_.end()) {
    job.avoided.insert(agent->second.profile.key());
  }
  end_lease_at_agent(job, reason);
  requeue(job, reason);
}

bool Scheduler::has_stalled(const OpenJob& job) const {
  const bool is_silent = clock_.steady_now() - job.lease->last_result >= options_.longest_without_result;
  return is_silent && (job.row.state != v1::Job::WAITING_FOR_IDLE_GPU || placement_.another_is_free(job));
}

void Scheduler::end_stalled_leases() {
  for (OpenJob* job : jobs_.leased_where([this](const OpenJob& job) { return has_stalled(job); })) {
    log_warning("job " + job->row.id + " has stored nothing for " +
                std::to_string(options_.longest_without_result.count()) + " minutes");
    take_back(*job, "its agent reported no result for too long");
  }
}

}  // namespace cubind
