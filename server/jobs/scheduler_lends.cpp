// Callers lend their GPUs.
#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "server/jobs/scheduler.hpp"

namespace cubind {

std::uint64_t Scheduler::lend(LentGpu lent) {
  const std::uint64_t id = lent_.add(std::move(lent));
  for (OpenJob& job : jobs_.all()) {
    if (job.row.state == v1::Job::WAITING_FOR_IDLE_GPU) {
      job.in_use_lent = job.waits_lent = false;  // until the agent has looked again
      job.not_before = {};
    }
  }
  dispatch();
  return id;
}

void Scheduler::note_use_of_lent_gpu(OpenJob& job, bool in_use_lent) {
  const std::string& gpu = job.lease->gpu_uuid;
  job.in_use_lent = job.row.state == v1::Job::WAITING_FOR_IDLE_GPU && in_use_lent;
  job.waits_lent = job.in_use_lent && lent_.is_used_in_spite(gpu, clock_.steady_now());
  if (job.row.state == v1::Job::RUNNING) {
    lent_.is_ours(gpu);
  }
}

void Scheduler::end_vain_waits() {
  for (OpenJob& job : jobs_.all()) {
    if (job.in_use_lent && !job.waits_lent && job.lease) {
      note_use_of_lent_gpu(job, true);
      if (job.waits_lent) {
        jobs_.tell(job);
      }
    }
  }
}

void Scheduler::move_to_a_lent_gpu() {
  const auto waits_elsewhere = [&](const auto& leased) {
    const OpenJob& job = *leased.second;
    return job.row.state == v1::Job::WAITING_FOR_IDLE_GPU && !lent_.is_lent(job.lease->gpu_uuid) &&
           placement_.lent_gpu_is_free(job);
  };
  const auto found = std::ranges::find_if(jobs_.leased(), waits_elsewhere);
  if (found == jobs_.leased().end()) {
    return;
  }
  OpenJob& job = *found->second;
  const HeldLease left = *job.lease;
  if (const auto agent = agents_.find(left.agent); agent != agents_.end()) {
    agent->second.link->end_lease(left.id, "a caller lends another GPU to the job");
  }
  log_info("job " + job.row.id + " moves from " + left.gpu_uuid + ", which is in use, to a GPU that is lent");
  jobs_.end_lease(job);
  job.stage.clear();
  job.row.state = v1::Job::QUEUED;
  assign(job);
}

}  // namespace cubind
