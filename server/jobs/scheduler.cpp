#include "server/jobs/scheduler.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "server/jobs/latest_measurement.hpp"
#include "server/kernel_library.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

std::string new_job_id() {
  const std::string seed = read_file("/proc/sys/kernel/random/uuid");
  return Digest::of(seed).hex().substr(0, 16);
}

}  // namespace

Scheduler::Scheduler(Store& store, Index& index, KernelLibrary& kernels, const Clock& clock,
                     SchedulerOptions options)
    : store_(store),
      index_(index),
      kernels_(kernels),
      clock_(clock),
      options_(options),
      jobs_(clock),
      lent_(agents_),
      failures_(kernels, agents_, clock, options.failure_pause),
      placement_(agents_, jobs_, failures_, lent_, options.compile_leases) {}

void Scheduler::load() {
  if (is_shared()) {
    take_changes();
  } else {
    load_jobs();
  }
  const auto devices = index_.snapshot()->devices();
  for (const RecordPtr& record : index_.snapshot()->all()) {
    const auto device = devices.find(record->question.device_class);
    if (device != devices.end() && knows(record->question)) {
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
    row.state = JobState::Queued;
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
  row.state = JobState::Failed;
  row.error = std::move(error);
  row.finished_at = clock_.wall_text();
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

JobEvent Scheduler::submit_tune(const RecordQuestion& question, const DeviceClass& device, bool retune) {
  return submit_tunes({{question, device}}, retune).front();
}

std::vector<JobEvent> Scheduler::submit_tunes(const std::vector<TuneOrder>& orders, bool retune) {
  std::vector<std::string> ids;
  try {
    for (const TuneOrder& order : orders) {
      JobRow row;
      row.kind = JobKind::Tune;
      row.question = order.question;
      row.from_scratch = order.from_scratch;
      row.key = tuning_key(row);
      row.rounds = order.rounds;
      row.retune = retune || order.from_scratch || power_limit_has_changed(order.question);
      row.for_bucket = order.for_bucket;
      row.listed = order.listed;
      row.note = order.listed.empty() ? "" : "measures the best of an earlier search again";
      if (order.budget) {
        row.budget = *order.budget;
      } else if (const OpenJob* open = jobs_.find_key(row.key)) {
        row.budget = open->row.budget;
        row.listed = open->row.listed;
      }
      OpenJob& job = enqueue(row, order.device, order.caller);
      ids.push_back(job.row.id);
      if (order.awaited) {
        await(job);
      }
    }
  } catch (const std::exception&) {
    dispatch();
    throw;
  }
  return dispatched(ids);
}

JobEvent Scheduler::submit_compile(const CompileOrder& order, const std::string& caller) {
  JobRow row;
  row.kind = JobKind::CompileWinner;
  row.key = order.key;
  row.question = order.question;
  row.listed = order.configurations;
  row.architecture = order.architecture;
  row.driver_cuda = order.driver_cuda;
  return dispatched({enqueue(row, order.device, caller).row.id}).front();
}

OpenJob& Scheduler::enqueue(const JobRow& row, const DeviceClass& device, const std::string& caller) {
  constexpr int kMostAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    try {
      return try_to_enqueue(row, device, caller);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Aborted || attempt == kMostAttempts) {
        throw;
      }
      take_changes();
    }
  }
}

OpenJob& Scheduler::try_to_enqueue(JobRow row, const DeviceClass& device, const std::string& caller) {
  if (OpenJob* job = jobs_.find_key(row.key)) {
    job->device = device;
    ask_again(*job, row);
    job->is_asked_here = true;
    return *job;
  }
  if (draining_) {
    throw Error(ErrorCode::Unavailable, "daemon", "is shutting down");
  }
  if (jobs_.all().size() >= options_.queue_limit) {
    throw Error(
        ErrorCode::ResourceExhausted, "job queue",
        "holds " + std::to_string(jobs_.all().size()) + " jobs, its limit: wait until some have ended");
  }
  CallerLimits::Hold counted;
  if (options_.limits != nullptr) {
    counted = options_.limits->take(caller, row.kind == JobKind::Tune ? Held::Jobs : Held::Compiles);
  }
  row.id = new_job_id();
  row.created_at = clock_.wall_text();
  std::optional<SharedJob> open;
  const std::string owner = resting_owner(row);
  std::uint64_t change = 0;
  store_.write([&](StoreWriter& writer) {
    open = writer.open_job(row.key);
    if (!open) {
      row.series = writer.last_series(row.question) + (row.retune ? 1 : 0);
      change = writer.put_job(row, owner);
    }
  });
  const ToolchainNeed needs = needs_of(row);
  OpenJob& job = jobs_.add(open ? open->job : row, device, needs);
  job.change = open ? open->change : change;
  job.owner = open ? open->owner : owner;
  job.is_asked_here = true;
  job.caller = caller;
  job.counted = std::move(counted);
  if (open) {
    ask_again(job, row);
  }
  return job;
}

ToolchainNeed Scheduler::needs_of(const JobRow& row) const {
  try {
    const bool is_foreign = options_.is_foreign && options_.is_foreign(row.question.kernel);
    return toolchain_need(*kernels_.find(row.question.kernel)->spec, is_foreign, row.architecture,
                          row.driver_cuda);
  } catch (const Error&) {
    return {{}, row.architecture, row.driver_cuda};  // it fails when it is granted, and tells why
  }
}

void Scheduler::ask_again(OpenJob& job, const JobRow& asked) {
  const bool only_exactly = job.row.for_bucket && !asked.for_bucket;
  if (!asked.listed.empty() && job.row.listed.empty()) {
    return;  // a search is more
  }
  const bool searches = asked.listed.empty() && !job.row.listed.empty();
  const bool searches_on = searches || !allows_as_much(job.row.budget, asked.budget);
  if ((asked.retune && !job.row.retune) || (only_exactly && job.smaller) || searches_on) {
    begin_anew(job, asked);
  } else if (only_exactly) {
    JobRow exact = job.row;
    exact.for_bucket = false;
    persist(job, exact, job.owner);
    job.row = std::move(exact);
  }
}

void Scheduler::begin_anew(OpenJob& job, const JobRow& asked) {
  JobRow row = job.row;
  row.retune = row.retune || asked.retune;
  row.for_bucket = row.for_bucket && asked.for_bucket;
  row.listed = asked.listed;
  row.rounds = asked.rounds;
  if (!allows_as_much(row.budget, asked.budget)) {
    row.budget = asked.budget;
  }
  row.note.clear();
  row.state = JobState::Queued;
  // The holder of its lease writes nothing more. A job that was never leased still gets its hints.
  row.fence += is_shared() && row.fence > 0 ? 1 : 0;
  const std::string owner = resting_owner(row);
  std::uint64_t change = 0;
  store_.write([&](StoreWriter& writer) {
    writer.require_unchanged(row.id, job.change);
    // A search that only goes on keeps what it has measured.
    if ((asked.retune && !job.row.retune) || job.smaller) {
      row.series = writer.last_series(row.question) + (row.retune ? 1 : 0);
    }
    change = writer.put_job(row, owner);
  });
  job.change = change;
  job.owner = owner;
  if (job.lease) {
    agents_.at(job.lease->agent)
        .link->end_lease(job.lease->id, "a Tune asks for a new measurement of its problem");
  }
  jobs_.end_lease(job);
  job.row = std::move(row);
  job.smaller.reset();
  job.needs_bytes = 0;
  job.stage.clear();
  job.not_before = {};
  jobs_.tell(job);
}

std::vector<JobEvent> Scheduler::dispatched(const std::vector<std::string>& ids) {
  // Granting may end a job at once: then nothing but its last event is left of it.
  const auto last = std::make_shared<std::map<std::string, JobEvent>>();
  std::vector<std::uint64_t> watching;
  for (const std::string& id : ids) {
    if (OpenJob* job = jobs_.find(id)) {
      watching.push_back(jobs_.watch(*job, [last](const JobEvent& event) { (*last)[event.job.id] = event; }));
    } else {
      (*last)[id] = ended_elsewhere(id);  // while the next ones were submitted
    }
  }
  dispatch();
  for (const std::uint64_t watch : watching) {
    jobs_.unwatch(watch);
  }
  std::vector<JobEvent> events;
  for (const std::string& id : ids) {
    const OpenJob* open = jobs_.find(id);
    events.push_back(open ? jobs_.event(*open) : last->at(id));
  }
  return events;
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
  if (!std::exchange(job.is_awaited, true) && job.lease && job.row.kind == JobKind::Tune) {
    agents_.at(job.lease->agent).link->awaited(job.lease->id);
  }
}

JobEvent Scheduler::cancel(const std::string& id) {
  if (is_shared()) {
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
  event.job.state = JobState::Cancelled;
  end(*job, JobState::Cancelled, "cancelled", nullptr);
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
  if (ended_since_ >= options_.forget_after) {
    forget_old_jobs();
  }
  dispatch();
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
      return job->row.state == JobState::WaitingForIdleGpu ? "waiting_for_idle_gpu" : "tuning";
    }
  }
  return "idle";
}

std::uint32_t Scheduler::queued() const { return static_cast<std::uint32_t>(jobs_.all().size()) - running(); }

std::uint32_t Scheduler::running() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      jobs_.all(), [this](const OpenJob& job) { return job.lease || is_elsewhere(job); }));
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
  job.row.error = std::move(error);
  job.row.finished_at = clock_.wall_text();
  jobs_.end_lease(job);
  if (state != JobState::Done && !store_end(job)) {
    return;
  }
  failures_.note(job.row);
  ++ended_since_;
  ++totals_.ended[state];
  for (const OutcomeCount& count : job.row.outcomes) {
    totals_.trials[count.outcome] += count.count;
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
    // The store is read-only: the job is over for all who wait, and begins again with the next start of the
    // daemon.
    log_warning("job " + job.row.id + ": its end is not stored: " + fault.what());
  }
  return true;
}

bool Scheduler::knows(const RecordQuestion& question) const {
  try {
    return kernels_.find(question.kernel)->interface == question.interface;
  } catch (const Error&) {
    return false;
  }
}

bool Scheduler::has_provisional_record(const RecordQuestion& question) const {
  const RecordPtr record = latest_measurement(question, *index_.snapshot());
  return record && record->provisional;
}

bool Scheduler::only_when_idle(const JobRow& row) const {
  return row.kind == JobKind::Tune &&
         (!row.listed.empty() || (!row.retune && has_provisional_record(row.question)));
}

bool Scheduler::power_limit_has_changed(const RecordQuestion& question) const {
  const RecordPtr record = latest_measurement(question, *index_.snapshot());
  bool other = false;
  for (const OfferedDevice& device : devices_of(agents_)) {
    const std::uint32_t limit = device.device.facts.power_limit_mw;
    if (!record || device.device.digest != question.device_class || limit == 0) {
      continue;
    }
    if (record->timing.power_limit_mw == 0 || record->timing.power_limit_mw == limit) {
      return false;
    }
    other = true;
  }
  return other;
}

}  // namespace cubind
