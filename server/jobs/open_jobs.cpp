#include "server/jobs/open_jobs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/jobs/agent.hpp"

namespace cubind {
namespace {

constexpr int kMaxStages = 256;  // of all leases of a job

double ms_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

double ms_of(const std::string& stage, const Stages& stages) {
  const auto at = std::ranges::find(stages, stage, &StageTime::stage);
  return at == stages.end() ? 0 : at->ms();
}

/// Adds a lease's times to those of its job's earlier leases.
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

}  // namespace

void HeldLease::note(const Stages& told, const std::string& told_stage,
                     std::chrono::steady_clock::time_point now) {
  shown = stages_at(now);
  stages = told;
  timed_stage = told_stage;
  reported = now;
}

Stages HeldLease::stages_at(std::chrono::steady_clock::time_point now) const {
  Stages result = stages;
  double too_much = 0, missing = 0;  // of what was shown
  for (StageTime& one : result) {
    one.set_ms(one.ms() + (one.stage() == timed_stage ? ms_between(reported, now) : 0));
    const double more = one.ms() - ms_of(one.stage(), shown);
    (more < 0 ? too_much : missing) += std::abs(more);
  }
  const double share = missing > too_much ? 1 - too_much / missing : 0;
  for (StageTime& one : result) {
    const double before = ms_of(one.stage(), shown);
    one.set_ms(before + share * std::max(0.0, one.ms() - before));
  }
  return result;
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
  lease->note(progress.stages(), progress.timed_stage(), now);
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

void OpenJob::add_lease(v1::Job& to, std::chrono::steady_clock::time_point now) const {
  if (lease) {
    to.set_elapsed_ms(to.elapsed_ms() + ms_between(lease->since, now));
    add_stages(lease->stages_at(now), *to.mutable_stages());
  }
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
  job.add_lease(event.job.shown(), clock_.steady_now());
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
