#include "server/jobs/open_jobs.hpp"

#include <utility>

namespace cubind {

RecordQuestion OpenJob::measured() const {
  RecordQuestion question = row.question;
  question.problem = smaller.value_or(question.problem);
  return question;
}

OpenJob& OpenJobs::add(JobRow row, const DeviceClass& device, ToolchainNeed needs) {
  const auto job = jobs_.insert(jobs_.end(), OpenJob{});
  job->row = std::move(row);
  job->device = device;
  job->needs = std::move(needs);
  by_id_[job->row.id] = job;
  by_key_[job->row.key] = &*job;
  return *job;
}

std::vector<OpenJob*> OpenJobs::leased_where(const std::function<bool(const OpenJob&)>& condition) const {
  std::vector<OpenJob*> found;
  for (const auto& [lease_id, job] : leased_) {
    if (condition(*job)) {
      found.push_back(job);
    }
  }
  return found;
}

void OpenJobs::remove(OpenJob& job, const JobEvent& last) {
  end_lease(job);
  const auto watchers = std::move(job.watchers);
  by_key_.erase(job.row.key);
  const auto found = by_id_.find(job.row.id);
  const auto at = found->second;
  by_id_.erase(found);
  jobs_.erase(at);
  for (const auto& [watch_id, watcher] : watchers) {
    watches_.erase(watch_id);
    watcher(last);
  }
}

const OpenJob* OpenJobs::find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &*found->second;
}

OpenJob* OpenJobs::find(const std::string& id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &*found->second;
}

const OpenJob* OpenJobs::find_key(const Digest& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

OpenJob* OpenJobs::find_key(const Digest& key) {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

OpenJob* OpenJobs::find_lease(const std::string& lease_id) {
  const auto found = leased_.find(lease_id);
  return found == leased_.end() ? nullptr : found->second;
}

void OpenJobs::begin_lease(OpenJob& job, HeldLease lease) {
  end_lease(job);
  job.refusal.clear();
  job.waits_because.clear();
  job.in_use_lent = job.waits_lent = false;
  leased_[lease.id] = &job;
  if (lease.gpu_uuid.empty()) {
    ++compile_leases_[lease.agent];
  } else {
    leased_gpus_.insert(lease.gpu_uuid);
  }
  job.lease = std::move(lease);
}

void OpenJobs::end_lease(OpenJob& job) {
  if (!job.lease) {
    return;
  }
  job.row.shown().set_elapsed_ms(job.row.shown().elapsed_ms() + leased_ms(job));
  leased_.erase(job.lease->id);
  if (!job.lease->gpu_uuid.empty()) {
    leased_gpus_.erase(leased_gpus_.find(job.lease->gpu_uuid));
  } else if (--compile_leases_[job.lease->agent] == 0) {
    compile_leases_.erase(job.lease->agent);
  }
  job.lease.reset();
}

std::uint32_t OpenJobs::compile_leases(std::uint64_t agent) const {
  const auto found = compile_leases_.find(agent);
  return found == compile_leases_.end() ? 0 : found->second;
}

double OpenJobs::leased_ms(const OpenJob& job) const {
  return job.lease ? std::chrono::duration<double, std::milli>(clock_.steady_now() - job.lease->since).count()
                   : 0;
}

JobEvent OpenJobs::event(const OpenJob& job) const {
  JobEvent event{
      job.row, job.device.label, job.stage, job.best_us, static_cast<std::uint32_t>(job.watchers.size()),
      nullptr, job.refusal,      job.needs};
  event.job.shown().set_elapsed_ms(event.job.shown().elapsed_ms() + leased_ms(job));
  event.waits_because = job.waits_because;
  event.waits_lent = job.waits_lent;
  return event;
}

void OpenJobs::tell(const OpenJob& job) const { tell(job, event(job)); }

void OpenJobs::tell_that_daemon_stops() const {
  std::vector<std::string> ids;
  for (const OpenJob& job : jobs_) {
    ids.push_back(job.row.id);
  }
  for (const std::string& id : ids) {
    if (const OpenJob* job = find(id)) {
      JobEvent now = event(*job);
      now.daemon_stops = true;
      tell(*job, now);
    }
  }
}

void OpenJobs::tell(const OpenJob& job, const JobEvent& now) {
  const auto watchers = job.watchers;
  for (const auto& [id, watcher] : watchers) {
    watcher(now);
  }
}

std::uint64_t OpenJobs::watch(OpenJob& job, Watcher watcher) {
  const std::uint64_t id = ++last_watch_;
  watches_[id] = job.row.id;
  job.watchers[id] = std::move(watcher);
  return id;
}

void OpenJobs::unwatch(std::uint64_t watch_id) {
  const auto found = watches_.find(watch_id);
  if (found == watches_.end()) {
    return;
  }
  if (OpenJob* job = find(found->second)) {
    job->watchers.erase(watch_id);
  }
  watches_.erase(found);
}

}  // namespace cubind
