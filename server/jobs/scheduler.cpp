#include "server/jobs/scheduler.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "server/store/store.hpp"

namespace cubind {

Scheduler::Scheduler(Store& store, Index& index, KernelLibrary& kernels, const Clock& clock,
                     SchedulerOptions options)
    : context_{store, index, kernels, clock, std::move(options)},
      agents_(clock),
      jobs_(clock),
      leases_(clock, context_.options.lease),
      owners_(store, kernels, leases_),
      order_(jobs_, leases_, owners_, index, kernels, clock),
      lent_(agents_.joined()),
      failures_(kernels, agents_.joined(), clock, context_.options.failure_pause),
      placement_(agents_.joined(), leases_, failures_, lent_, context_.options.compile_leases),
      queue_(context_, jobs_, leases_, owners_, order_, failures_),
      peers_(context_, agents_, jobs_, owners_, queue_),
      submissions_(context_, agents_, jobs_, owners_, queue_, peers_),
      dispatcher_(context_, agents_, jobs_, leases_, owners_, order_, placement_, queue_),
      outcomes_(context_, leases_, owners_, placement_, queue_, submissions_),
      checks_(agents_.joined()) {}

void Scheduler::load() {
  if (!peers_.take()) {
    queue_.load_jobs();
  }
  submissions_.measure_all_again();
  queue_.load_failures();
  dispatcher_.dispatch();
}

std::vector<JobEvent> Scheduler::submit_tunes(const std::vector<TuneOrder>& orders, bool retune) {
  std::vector<std::string> ids;
  try {
    for (const TuneOrder& order : orders) {
      ids.push_back(submissions_.tune(order, retune));
    }
  } catch (const std::exception&) {
    dispatcher_.dispatch();
    throw;
  }
  return dispatched(ids);
}

JobEvent Scheduler::submit_compile(const CompileOrder& order, const std::string& caller) {
  return dispatched({submissions_.compile(order, caller)}).front();
}

std::vector<JobEvent> Scheduler::dispatched(const std::vector<std::string>& ids) {
  // Granting may end a job at once: then nothing but its last event is left of it.
  const auto last = std::make_shared<std::map<std::string, JobEvent>>();
  std::vector<std::uint64_t> watching;
  for (const std::string& id : ids) {
    if (OpenJob* job = jobs_.find(id)) {
      watching.push_back(jobs_.watch(*job, [last](const JobEvent& event) { (*last)[event.job.id] = event; }));
    } else {
      (*last)[id] = peers_.ended(id);  // while the next ones were submitted
    }
  }
  dispatcher_.dispatch();
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

void Scheduler::await(const std::string& job_id) {
  if (OpenJob* job = jobs_.find(job_id)) {
    job->await();
  }
}

std::uint64_t Scheduler::lend(LentGpu lent) {
  const std::uint64_t id = lent_.add(std::move(lent));
  for (OpenJob& job : jobs_.all()) {
    if (job.row.state == v1::Job::WAITING_FOR_IDLE_GPU) {
      job.in_use_lent = job.waits_lent = false;  // until the agent has looked again
      job.not_before = {};
    }
  }
  dispatcher_.dispatch();
  return id;
}

JobEvent Scheduler::cancel(const std::string& id) {
  peers_.take();
  OpenJob* job = jobs_.find(id);
  if (!job) {
    bool known = false;
    context_.store.read([&](StoreReader& reader) { known = reader.job(id).has_value(); });
    if (known) {
      throw Error(ErrorCode::FailedPrecondition, "id", "job " + quoted(id) + " has ended");
    }
    throw no_such_job(id);
  }
  JobEvent event = jobs_.event(*job);
  event.job.state = v1::Job::CANCELLED;
  leases_.withdraw(*job, "the job was cancelled");
  queue_.end(*job, v1::Job::CANCELLED, "cancelled");
  if (jobs_.find(id) != nullptr) {
    throw Error(ErrorCode::Aborted, "job " + id, "another daemon has changed it meanwhile: cancel it again");
  }
  dispatcher_.dispatch();
  return event;
}

std::uint64_t Scheduler::agent_joined(AgentProfile profile, AgentLink& link) {
  const std::uint64_t id = agents_.join(std::move(profile), link);
  if (queue_.draining()) {
    link.drain();
  }
  lent_.tell(agents_.joined().at(id));
  agents_changed();
  return id;
}

void Scheduler::agent_devices(std::uint64_t agent, std::vector<OfferedDevice> devices) {
  JoinedAgent* const joined = agents_.find(agent);
  if (joined == nullptr) {
    return;
  }
  joined->profile.devices = std::move(devices);
  lent_.tell(*joined);
  for (OpenJob* job : leases_.of_agent(agent)) {
    const bool is_offered = std::ranges::any_of(joined->profile.devices, [&](const OfferedDevice& one) {
      return one.uuid == job->lease->gpu_uuid && one.device.digest == job->row.question.device_class;
    });
    if (!job->lease->gpu_uuid.empty() && !is_offered) {
      queue_.take_back(*job, "the agent no longer offers its GPU");
    }
  }
  agents_changed();
}

void Scheduler::agent_left(std::uint64_t agent, const std::string& reason) {
  const JoinedAgent* const joined = agents_.find(agent);
  const bool is_leaving = joined != nullptr && joined->is_leaving;
  agents_.remove(agent);
  for (OpenJob* job : leases_.of_agent(agent)) {
    is_leaving ? queue_.put_back(*job) : queue_.interrupt(*job, reason);
  }
  checks_.agent_left(agent);
  agents_changed();
}

void Scheduler::agent_leaves(std::uint64_t agent) {
  if (JoinedAgent* joined = agents_.find(agent)) {
    log_info("agent " + joined->profile.id + " is leaving");
    joined->is_leaving = true;
    agents_changed();
  }
}

void Scheduler::avoid(std::uint64_t agent) {
  for (OpenJob* job : leases_.of_agent(agent)) {
    job->avoided.insert(job->lease->agent_key);
  }
}

bool Scheduler::may_find_device(const Digest& device_class) const {
  const auto measures_it = [&](std::uint64_t, const OfferedDevice& device) {
    return device.device.digest == device_class && may_measure(device);
  };
  return agents_.is_expected() || any_device(agents_.joined(), measures_it) ||
         owners_.is_offered_elsewhere(v1::Job::TUNE, device_class);
}

void Scheduler::agents_changed() {
  owners_.tell_offer(agents_.joined());
  peers_.find_devices();
  agents_.tell_change();
  dispatcher_.dispatch();
}

OpenJob* Scheduler::leased_job(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence) {
  OpenJob* const job = leases_.renew(agent, lease_id, fence);
  const JoinedAgent* const joined = agents_.find(agent);
  if (job == nullptr && joined != nullptr && !lease_id.empty()) {
    joined->link->end_lease(lease_id,
                            "the lease is over or its fence " + std::to_string(fence) + " is stale");
  }
  return job;
}

bool Scheduler::heartbeat(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence) {
  return leased_job(agent, lease_id, fence) != nullptr;
}

bool Scheduler::progress(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                         const v1::Progress& progress) {
  OpenJob* job = leased_job(agent, lease_id, fence);
  if (!job) {
    return false;
  }
  const auto now = context_.clock.steady_now();
  const bool changed = job->note(progress, now);
  if (changed && job->row.state == v1::Job::RUNNING && !placement_.another_is_free(*job)) {
    job->lease->last_result = now;  // it has waited for an idle GPU
  }
  lent_.note_use(*job, progress.is_lent(), now);
  jobs_.tell(*job);
  if (changed) {
    if (!owners_.keep_state(*job)) {
      return false;
    }
    dispatcher_.dispatch();  // the jobs queued behind it wait for the same
  }
  return true;
}

bool Scheduler::store_batch(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                            WorkBatch batch) {
  OpenJob* job = leased_job(agent, lease_id, fence);
  return job && outcomes_.store_batch(*job, agents_.joined().at(agent), batch);
}

bool Scheduler::finish(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                       WorkResult result) {
  OpenJob* job = leased_job(agent, lease_id, fence);
  if (!job) {
    return false;
  }
  const bool is_taken = outcomes_.finish(*job, agents_.joined().at(agent), result);
  dispatcher_.dispatch();
  return is_taken;
}

std::string Scheduler::check(CheckOrder order, const std::string& caller, PendingChecks::Done done) {
  if (const auto agent = placement_.compiler_for(order.needs)) {
    return checks_.add(*agent, caller, std::move(order), std::move(done));
  }
  done({}, "no agent is connected that compiles for " + order.needs.architecture +
               " (the daemon's log says why): " + no_toolchain_because(order.needs, agents_.profiles()));
  return "";
}

void Scheduler::catch_up() {
  if (peers_.take()) {
    dispatcher_.dispatch();
  }
}

void Scheduler::tick() {
  dispatcher_.expire();
  for (OpenJob* job : lent_.vain_waits(leases_, context_.clock.steady_now())) {
    jobs_.tell(*job);
  }
  queue_.tick();
  dispatcher_.dispatch();
}

void Scheduler::drain() {
  queue_.drain();
  for (const auto& [id, agent] : agents_.joined()) {
    agent.link->drain();
  }
  jobs_.tell_that_daemon_stops();
  checks_.end_all("the daemon is shutting down");
}

}  // namespace cubind
