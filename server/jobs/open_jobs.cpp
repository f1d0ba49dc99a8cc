#include "server/jobs/open_jobs.hpp"

#include <algorithm>
#include <utility>

#include "server/jobs/agent.hpp"

namespace cubind {
namespace {

constexpr int kMaxStages = 256;  // of all leases of a job

/// As its agent has last reported them; the stage of that report goes on.
Stages stages_of(const OpenJob& job, std::chrono::steady_clock::time_point now) {
  Stages stages = job.lease->stages;
  const bool waits = job.row.state == v1::Job::WAITING_FOR_IDLE_GPU;
  const auto current =
      std::ranges::find(stages, waits ? "waiting_for_idle_gpu" : job.stage, &StageTime::stage);
  if (current != stages.end()) {
    const std::chrono::duration<double, std::milli> since = now - job.lease->reported;
    current->set_ms(current->ms() + since.count());
  }
  return stages;
}

}  // namespace

void add_stages(const Stages& lease, Stages& job) {
  for (const StageTime& one : lease) {
    const auto at = std::ranges::find(job, one.stage(), &StageTime::stage);
    if (at == job.end() && job.size() < kMaxStages) {
      *job.Add() = one;
    } else if (at != job.end()) {
      at->set_ms(at->ms() + one.ms());
    }
  }
}

RecordQuestion OpenJob::measured() const {
  RecordQuestion question = row.question;
  question.problem = smaller.value_or(question.problem);
  return question;
}

void OpenJob::await() {
  if (!std::exchange(is_awaited, true) && lease && measures(row)) {
    lease->link->awaited(lease->id);
  }
}

bool OpenJob::note(const v1::Progress& progress, std::chrono::steady_clock::time_point now) {
  lease->stages = progress.stages();
  lease->reported = now;
  stage = progress.stage();
  waits_because = progress.waits_because();
  best_us = progress.best_us();
  row.shown().set_configurations(progress.configurations());
  row.shown().set_configurations_done(std::min(progress.configurations_done(), progress.configurations()));
  row.shown().set_nvrtc_calls(progress.nvrtc_calls());
  const bool waits = progress.state() == v1::Job::WAITING_FOR_IDLE_GPU;
  const JobState state = waits ? v1::Job::WAITING_FOR_IDLE_GPU : v1::Job::RUNNING;
  return std::exchange(row.state, state) != state;
}

double OpenJob::leased_ms(std::chrono::steady_clock::time_point now) const {
  return lease ? std::chrono::duration<double, std::milli>(now - lease->since).count() : 0;
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

void OpenJobs::remove(OpenJob& job, const JobEvent& last) {
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

OpenJob* OpenJobs::find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &*found->second;
}

OpenJob* OpenJobs::find_key(const Digest& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

JobEvent OpenJobs::event(const OpenJob& job) const {
  JobEvent event{
      job.row, job.device.label, job.stage, job.best_us, static_cast<std::uint32_t>(job.watchers.size()),
      nullptr, job.refusal,      job.needs};
  const auto now = clock_.steady_now();
  event.job.shown().set_elapsed_ms(event.job.shown().elapsed_ms() + job.leased_ms(now));
  if (job.lease) {
    add_stages(stages_of(job, now), *event.job.shown().mutable_stages());
  }
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
