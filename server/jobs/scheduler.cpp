#include "server/jobs/scheduler.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "server/jobs/latest_measurement.hpp"
#include "server/kernel_library.hpp"
#include "server/lookup/lookup.hpp"
#include "server/store/store.hpp"

namespace cubind {

Scheduler::Scheduler(Store& store, Index& index, KernelLibrary& kernels, const Clock& clock,
                     SchedulerOptions options)
    : store_(store),
      index_(index),
      kernels_(kernels),
      clock_(clock),
      options_(options),
      owners_(store, kernels),
      jobs_(clock),
      order_(jobs_, owners_, index, kernels, clock),
      lent_(agents_),
      failures_(kernels, agents_, clock, options.failure_pause),
      placement_(agents_, jobs_, failures_, lent_, options.compile_leases) {}

void Scheduler::load() {
  if (owners_.is_shared()) {
    take_changes();
  } else {
    load_jobs();
  }
  const auto devices = index_.snapshot()->devices();
  for (const RecordPtr& record : index_.snapshot()->all()) {
    const auto device = devices.find(record->question.device_class);
    if (device != devices.end() && owners_.knows(record->question)) {
      measure_again_when_idle(record->question, device->second);
    }
  }
  forget_old_jobs();
  load_failures();
  dispatch();
}

void Scheduler::load_jobs() {
  fail_damaged_jobs();
  std::vector<JobRow> rows;
  std::map<Digest, DeviceClass> devices;
  store_.read([&](StoreReader& reader) {
    rows = reader.open_jobs();
    devices = reader.device_classes();
  });
  for (JobRow& row : rows) {
    const auto device = devices.find(row.question.device_class);
    if (device == devices.end()) {
      fail_before_loaded(std::move(row),
                         "its device class is damaged in the store, or neither an agent nor a table has "
                         "brought it: ask again");
      continue;
    }
    row.state = v1::Job::QUEUED;
    const ToolchainNeed needs = needs_of(row);
    jobs_.add(std::move(row), device->second, needs);
  }
}

void Scheduler::forget_old_jobs() {
  ended_since_ = 0;
  store_.write_behind([before = iso8601_utc(clock_.wall_now() - options_.job_memory)](StoreWriter& writer) {
    writer.forget_jobs(before);
  });
}

void Scheduler::fail_damaged_jobs() {
  try {
    store_.write([](StoreWriter& writer) { writer.fail_damaged_jobs(); });
  } catch (const Error& error) {
    // The store is read-only: they stay open in the file, and no agent gets them.
    log_warning(std::string("damaged jobs are not ended: ") + error.what());
  }
}

void Scheduler::fail_before_loaded(JobRow row, std::string error) {
  log_error("job " + row.id + " has failed: " + error);
  row.state = v1::Job::FAILED;
  row.shown().set_error(std::move(error));
  row.shown().set_finished_at(clock_.wall_text());
  try {
    store_.write([&](StoreWriter& writer) { writer.put_job(row); });
  } catch (const Error& fault) {
    log_warning("job " + row.id + ": its end is not stored: " + fault.what());
  }
}

void Scheduler::load_failures() {
  std::vector<JobRow> rows;
  store_.read([&](StoreReader& reader) { rows = reader.out_of_memory_jobs(); });
  for (const JobRow& row : rows) {
    failures_.note(row);
  }
}

std::optional<JobEvent> Scheduler::find_open(const RecordQuestion& question) const {
  const OpenJob* job = jobs_.find_key(job_key(question));
  return job ? std::optional(jobs_.event(*job)) : std::nullopt;
}

std::optional<JobEvent> Scheduler::find(const std::string& id) const {
  const OpenJob* job = jobs_.find(id);
  return job ? std::optional(jobs_.event(*job)) : std::nullopt;
}

std::vector<JobEvent> Scheduler::open_jobs() const {
  std::vector<JobEvent> events;
  for (const OpenJob& job : jobs_.all()) {
    events.push_back(jobs_.event(job));
  }
  return events;
}

std::optional<std::string> Scheduler::failed_lately(const Digest& key, bool for_bucket) const {
  return failures_.find(key, for_bucket);
}

std::uint64_t Scheduler::watch(const std::string& job_id, Watcher watcher) {
  OpenJob* job = jobs_.find(job_id);
  return job ? jobs_.watch(*job, std::move(watcher)) : 0;
}

void Scheduler::unwatch(std::uint64_t watch_id) { jobs_.unwatch(watch_id); }

void Scheduler::await(const std::string& job_id) {
  if (OpenJob* job = jobs_.find(job_id)) {
    await(*job);
  }
}

void Scheduler::await(OpenJob& job) {
  if (!std::exchange(job.is_awaited, true) && job.lease && job.row.kind == v1::Job::TUNE) {
    agents_.at(job.lease->agent).link->awaited(job.lease->id);
  }
}

JobEvent Scheduler::cancel(const std::string& id) {
  if (owners_.is_shared()) {
    take_changes();
  }
  OpenJob* job = jobs_.find(id);
  if (!job) {
    bool known = false;
    store_.read([&](StoreReader& reader) { known = reader.job(id).has_value(); });
    if (known) {
      throw Error(ErrorCode::FailedPrecondition, "id", "job " + quoted(id) + " has ended");
    }
    throw no_such_job(id);
  }
  if (job->lease) {
    agents_.at(job->lease->agent).link->end_lease(job->lease->id, "the job was cancelled");
  }
  JobEvent event = jobs_.event(*job);
  event.job.state = v1::Job::CANCELLED;
  end(*job, v1::Job::CANCELLED, "cancelled", nullptr);
  if (jobs_.find(id) != nullptr) {
    throw Error(ErrorCode::Aborted, "job " + id, "another daemon has changed it meanwhile: cancel it again");
  }
  dispatch();
  return event;
}

void Scheduler::expect_agent_until(std::chrono::steady_clock::time_point deadline) {
  agent_expected_until_ = deadline;
}

bool Scheduler::agent_expected() const { return clock_.steady_now() < agent_expected_until_; }

void Scheduler::tick() {
  expire_leases();
  end_vain_waits();
  end_jobs_without_kernel();
  if (ended_since_ >= options_.forget_after) {
    forget_old_jobs();
  }
  dispatch();
}

void Scheduler::end_jobs_without_kernel() {
  constexpr std::chrono::seconds kBetweenLooks{2};
  const auto now = clock_.steady_now();
  if (now < next_look_for_kernels_) {
    return;
  }
  next_look_for_kernels_ = now + kBetweenLooks;
  std::vector<std::pair<OpenJob*, std::string>> gone;
  for (OpenJob& job : jobs_.all()) {
    try {
      // Another daemon's job waits for one that knows its kernel.
      if (!job.lease && owners_.may_run_here(job) && (job.is_asked_here || !owners_.is_shared())) {
        kernels_.find(job.row.question.kernel);
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::NotFound) {
        gone.emplace_back(&job, error.what());
      }
    }
  }
  for (const auto& [job, error] : gone) {
    end(*job, v1::Job::FAILED,
        error +
            ": its spec was removed, or its definition made room for others, and its caller sends it again",
        nullptr);
  }
}

void Scheduler::drain() {
  draining_ = true;
  for (auto& [id, agent] : agents_) {
    agent.link->drain();
  }
  jobs_.tell_that_daemon_stops();
  checks_.end_all("the daemon is shutting down");
}

bool Scheduler::idle() const { return jobs_.leased().empty(); }

bool Scheduler::draining() const { return draining_; }

std::vector<AgentProfile> Scheduler::agents() const {
  std::vector<AgentProfile> profiles;
  for (const auto& [id, agent] : agents_) {
    profiles.push_back(agent.profile);
  }
  return profiles;
}

std::string Scheduler::device_state(const std::string& uuid) const {
  for (const auto& [lease_id, job] : jobs_.leased()) {
    if (job->lease->gpu_uuid == uuid) {
      return job->row.state == v1::Job::WAITING_FOR_IDLE_GPU ? "waiting_for_idle_gpu" : "tuning";
    }
  }
  return "idle";
}

v1::Conditions Scheduler::device_conditions(const std::string& uuid) const {
  const auto found = conditions_.find(uuid);
  return found == conditions_.end() ? v1::Conditions() : found->second;
}

std::uint32_t Scheduler::queued() const { return static_cast<std::uint32_t>(jobs_.all().size()) - running(); }

std::uint32_t Scheduler::running() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      jobs_.all(), [this](const OpenJob& job) { return job.lease || owners_.is_elsewhere(job); }));
}

void Scheduler::on_artifact(std::function<void(const ArtifactRow&)> listener) {
  artifact_listeners_.push_back(std::move(listener));
}

void Scheduler::on_agents(std::function<void()> listener) { agent_listeners_.push_back(std::move(listener)); }

void Scheduler::persist(OpenJob& job, const JobRow& row, const std::string& owner) {
  std::uint64_t change = 0;
  store_.write([&](StoreWriter& writer) {
    writer.require_unchanged(row.id, job.change);
    change = writer.put_job(row, owner);
  });
  job.change = change;
  job.owner = owner;
}

bool Scheduler::is_passing(const Error& error) {
  return error.code() == ErrorCode::ResourceExhausted || error.code() == ErrorCode::Unavailable;
}

void Scheduler::end(OpenJob& job, JobState state, std::string error, RecordPtr record) {
  job.row.state = state;
  job.row.shown().set_error(std::move(error));
  job.row.shown().set_finished_at(clock_.wall_text());
  jobs_.end_lease(job);
  if (state != v1::Job::DONE && !store_end(job)) {
    return;
  }
  failures_.note(job.row);
  ++ended_since_;
  ++totals_.ended[state];
  for (const OutcomeCount& count : job.row.shown().outcomes()) {
    totals_.trials[outcome_from_wire(count.outcome(), "outcome")] += count.count();
  }
  JobEvent last = jobs_.event(job);
  last.record = std::move(record);
  jobs_.remove(job, last);
}

bool Scheduler::store_end(OpenJob& job) {
  try {
    persist(job, job.row, "");
  } catch (const Error& fault) {
    if (fault.code() == ErrorCode::Aborted) {
      lose(job, fault.what());
      return false;
    }
    // The store takes no writes: the job is over for all who wait. It is still open there, and begins again
    // with the next start of the daemon, or as soon as a shared store is back.
    log_warning("job " + job.row.id + ": its end is not stored: " + fault.what());
  }
  return true;
}

bool Scheduler::power_limit_has_changed(const RecordQuestion& question) const {
  const RecordPtr record = latest_measurement(question, *index_.snapshot());
  bool other = false;
  for (const OfferedDevice& device : devices_of(agents_)) {
    if (record && device.device.digest == question.device_class) {
      const auto same = has_same_limit(record->timing, device.device.facts);
      if (same == true) {
        return false;
      }
      other = other || same == false;
    }
  }
  return other;
}

}  // namespace cubind
