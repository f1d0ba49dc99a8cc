#include "server/jobs/scheduler.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "server/jobs/scheduler_state.hpp"
#include "server/kernel_library.hpp"
#include "server/store/store.hpp"

namespace cubind {

Scheduler::Scheduler(Store& store, Index& index, KernelLibrary& kernels, const Clock& clock,
                     SchedulerOptions options)
    : state_(std::make_unique<State>(store, index, kernels, clock, options)) {}

Scheduler::~Scheduler() = default;

void Scheduler::load() {
  state_->fail_damaged_jobs();
  std::vector<JobRow> rows;
  std::map<Digest, DeviceClass> devices;
  state_->store.read([&](StoreReader& reader) {
    rows = reader.open_jobs();
    for (DeviceClass& device : reader.device_classes()) {
      devices.emplace(device.digest, std::move(device));
    }
  });
  for (JobRow& row : rows) {
    const auto device = devices.find(row.question.device_class);
    if (device == devices.end()) {
      state_->fail_before_loaded(std::move(row), "its device class is not in the store or is damaged there");
      continue;
    }
    row.state = JobState::Queued;
    state_->add(std::move(row), device->second);
  }
  for (const RecordPtr& record : state_->index.snapshot()->all()) {
    const auto device = devices.find(record->question.device_class);
    if (device != devices.end() && state_->knows(record->question)) {
      state_->measure_again_when_idle(record->question, device->second);
    }
  }
  state_->load_failures();
  state_->dispatch();
}

void Scheduler::State::fail_damaged_jobs() {
  try {
    store.write([](StoreWriter& writer) { writer.fail_damaged_jobs(); });
  } catch (const Error& error) {
    // The store is read-only: they stay open in the file, and nobody goes on with them.
    log_warning(std::string("damaged jobs are not ended: ") + error.what());
  }
}

void Scheduler::State::fail_before_loaded(JobRow row, std::string error) {
  log_error("job " + row.id + " has failed: " + error);
  row.state = JobState::Failed;
  row.error = std::move(error);
  row.finished_at = clock.wall_text();
  try {
    persist(row);
  } catch (const Error& fault) {
    log_warning("job " + row.id + ": its end is not stored: " + fault.what());
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
      row.key = job_key(order.question);
      row.question = order.question;
      row.retune = retune || state_->power_limit_has_changed(order.question);
      row.for_bucket = order.for_bucket;
      ids.push_back(state_->enqueue(std::move(row), order.device).row.id);
    }
  } catch (const std::exception&) {
    state_->dispatch();
    throw;
  }
  return state_->dispatched(ids);
}

JobEvent Scheduler::submit_compile(const CompileOrder& order) {
  JobRow row;
  row.kind = JobKind::CompileWinner;
  row.key = order.key;
  row.question = order.question;
  row.compile = order.configurations;
  row.architecture = order.architecture;
  row.driver_cuda = order.driver_cuda;
  return state_->dispatched({state_->enqueue(std::move(row), order.device).row.id}).front();
}

OpenJob& Scheduler::State::enqueue(JobRow row, const DeviceClass& device) {
  if (const auto met = by_key.find(row.key); met != by_key.end()) {
    OpenJob& job = *met->second;
    const bool only_exactly = job.row.for_bucket && !row.for_bucket;
    if ((row.retune && !job.row.retune) || (only_exactly && job.smaller)) {
      begin_anew(job, row);
    } else if (only_exactly) {
      JobRow exact = job.row;
      exact.for_bucket = false;
      persist(exact);
      job.row = std::move(exact);
    }
    return job;
  }
  if (draining) {
    throw Error(ErrorCode::Unavailable, "daemon", "is shutting down");
  }
  if (jobs.size() >= options.queue_limit) {
    throw Error(ErrorCode::ResourceExhausted, "job queue",
                "holds " + std::to_string(jobs.size()) + " jobs, its limit: wait until some have ended");
  }
  row.id = fresh_id();
  row.created_at = clock.wall_text();
  store.write([&](StoreWriter& writer) {
    row.series = writer.last_series(row.question) + (row.retune ? 1 : 0);
    writer.put_device_class(device);
    writer.put_job(row);
  });
  return add(std::move(row), device);
}

OpenJob& Scheduler::State::add(JobRow row, const DeviceClass& device) {
  const auto job = jobs.insert(jobs.end(), OpenJob{});
  job->row = std::move(row);
  job->device = device;
  by_id[job->row.id] = job;
  by_key[job->row.key] = &*job;
  return *job;
}

void Scheduler::State::begin_anew(OpenJob& job, const JobRow& asked) {
  JobRow row = job.row;
  row.retune = row.retune || asked.retune;
  row.for_bucket = row.for_bucket && asked.for_bucket;
  row.note.clear();
  row.state = JobState::Queued;
  store.write([&](StoreWriter& writer) {
    row.series = writer.last_series(row.question) + (row.retune ? 1 : 0);
    writer.put_job(row);
  });
  if (job.leased()) {
    agents.at(job.agent).link->end_lease(job.lease_id, "a Tune asks for a new measurement of its problem");
  }
  drop_lease(job);
  job.row = std::move(row);
  job.smaller.reset();
  job.needs_bytes = 0;
  job.phase.clear();
  job.not_before = {};
  tell(job);
}

std::vector<JobEvent> Scheduler::State::dispatched(const std::vector<std::string>& ids) {
  // Granting may end a job at once: then nothing but its last event is left of it.
  const auto last = std::make_shared<std::map<std::string, JobEvent>>();
  std::vector<std::uint64_t> watching;
  for (const std::string& id : ids) {
    watching.push_back(watch(*find(id), [last](const JobEvent& event) { (*last)[event.job.id] = event; }));
  }
  dispatch();
  std::vector<JobEvent> events;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    unwatch(watching[i]);
    const OpenJob* open = find(ids[i]);
    events.push_back(open ? event_of(*open) : last->at(ids[i]));
  }
  return events;
}

std::string Scheduler::State::fresh_id() {
  const std::string seed = read_file("/proc/sys/kernel/random/uuid") + std::to_string(jobs.size());
  return Digest::of(seed).hex().substr(0, 16);
}

std::optional<JobEvent> Scheduler::find_open(const RecordQuestion& question) const {
  const auto found = state_->by_key.find(job_key(question));
  return found == state_->by_key.end() ? std::nullopt : std::optional(state_->event_of(*found->second));
}

std::optional<JobEvent> Scheduler::find(const std::string& id) const {
  const OpenJob* job = state_->find(id);
  return job ? std::optional(state_->event_of(*job)) : std::nullopt;
}

std::vector<JobEvent> Scheduler::open_jobs() const {
  std::vector<JobEvent> events;
  for (const OpenJob& job : state_->jobs) {
    events.push_back(state_->event_of(job));
  }
  return events;
}

std::uint64_t Scheduler::watch(const std::string& job_id, Watcher watcher) {
  OpenJob* job = state_->find(job_id);
  return job ? state_->watch(*job, std::move(watcher)) : 0;
}

std::uint64_t Scheduler::State::watch(OpenJob& job, Watcher watcher) {
  const std::uint64_t id = ++last_watch;
  watches[id] = job.row.id;
  job.watchers[id] = std::move(watcher);
  return id;
}

void Scheduler::unwatch(std::uint64_t watch_id) { state_->unwatch(watch_id); }

void Scheduler::State::unwatch(std::uint64_t watch_id) {
  const auto found = watches.find(watch_id);
  if (found == watches.end()) {
    return;
  }
  if (OpenJob* job = find(found->second)) {
    job->watchers.erase(watch_id);
  }
  watches.erase(found);
}

JobEvent Scheduler::cancel(const std::string& id) {
  OpenJob* job = state_->find(id);
  if (!job) {
    bool known = false;
    state_->store.read([&](StoreReader& reader) { known = reader.job(id).has_value(); });
    if (known) {
      throw Error(ErrorCode::FailedPrecondition, "id", "job " + quoted(id) + " has ended");
    }
    throw Error(ErrorCode::NotFound, "id", "there is no job " + quoted(id));
  }
  if (job->leased()) {
    state_->agents.at(job->agent).link->end_lease(job->lease_id, "the job was cancelled");
  }
  JobEvent event = state_->event_of(*job);
  event.job.state = JobState::Cancelled;
  state_->end(*job, JobState::Cancelled, "cancelled", nullptr);
  state_->dispatch();
  return event;
}

void Scheduler::expect_agent_until(SteadyTime deadline) { state_->agent_expected_until = deadline; }

bool Scheduler::agent_expected() const { return state_->clock.steady_now() < state_->agent_expected_until; }

void Scheduler::tick() {
  state_->expire_leases();
  state_->dispatch();
}

void Scheduler::drain() {
  state_->draining = true;
  for (auto& [id, agent] : state_->agents) {
    agent.link->drain();
  }
}

bool Scheduler::idle() const { return state_->leases.empty(); }

bool Scheduler::draining() const { return state_->draining; }

std::vector<AgentProfile> Scheduler::agents() const {
  std::vector<AgentProfile> profiles;
  for (const auto& [id, agent] : state_->agents) {
    profiles.push_back(agent.profile);
  }
  return profiles;
}

std::string Scheduler::device_state(const std::string& uuid) const {
  for (const auto& [id, job] : state_->leases) {
    if (job->gpu_uuid == uuid) {
      return job->row.state == JobState::WaitingForIdleGpu ? "waiting_for_idle_gpu" : "tuning";
    }
  }
  return "idle";
}

std::uint32_t Scheduler::queued() const {
  return static_cast<std::uint32_t>(state_->jobs.size() - state_->leases.size());
}

std::uint32_t Scheduler::running() const { return static_cast<std::uint32_t>(state_->leases.size()); }

void Scheduler::on_artifact(std::function<void(const ArtifactRow&)> listener) {
  state_->artifact_listeners.push_back(std::move(listener));
}

void Scheduler::on_agents(std::function<void()> listener) {
  state_->agent_listeners.push_back(std::move(listener));
}

JobEvent Scheduler::State::event_of(const OpenJob& job) const {
  JobEvent event{
      job.row, job.device.label, job.phase, job.best_us, static_cast<std::uint32_t>(job.watchers.size()),
      nullptr};
  event.job.elapsed_ms += job.leased_ms(clock.steady_now());
  return event;
}

OpenJob* Scheduler::State::find(const std::string& id) {
  const auto found = by_id.find(id);
  return found == by_id.end() ? nullptr : &*found->second;
}

void Scheduler::State::tell(const OpenJob& job) {
  const JobEvent event = event_of(job);
  // A watcher may stop watching while it is told.
  const auto watchers = job.watchers;
  for (const auto& [id, watcher] : watchers) {
    watcher(event);
  }
}

void Scheduler::State::persist(const JobRow& row) {
  store.write([&](StoreWriter& writer) { writer.put_job(row); });
}

void Scheduler::State::end(OpenJob& job, JobState state, std::string error, RecordPtr record) {
  job.row.state = state;
  job.row.error = std::move(error);
  job.row.finished_at = clock.wall_text();
  note_failure(job.row);
  release(job);
  try {
    if (state != JobState::Done) {
      persist(job.row);
    }
  } catch (const Error& fault) {
    // The store is read-only: the job is over for all who wait, and begins again with the next start of the
    // daemon.
    log_warning("job " + job.row.id + ": its end is not stored: " + fault.what());
  }
  JobEvent last = event_of(job);
  last.record = std::move(record);
  forget(job.row.id, last);
}

bool Scheduler::State::knows(const RecordQuestion& question) const {
  try {
    return kernels.find(question.kernel)->interface == question.interface;
  } catch (const Error&) {
    return false;
  }
}

std::uint64_t Scheduler::State::revision_of(const std::string& kernel) const {
  try {
    return kernels.find(kernel)->revision;
  } catch (const Error&) {
    return 0;
  }
}

void Scheduler::State::forget(const std::string& id, const JobEvent& last) {
  const auto found = by_id.find(id);
  const auto job = found->second;
  const auto watchers = std::move(job->watchers);
  by_key.erase(job->row.key);
  by_id.erase(found);
  jobs.erase(job);
  for (const auto& [watch_id, watcher] : watchers) {
    watches.erase(watch_id);
    watcher(last);
  }
}

}  // namespace cubind
