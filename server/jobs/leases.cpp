#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/jobs/grant.hpp"
#include "server/jobs/latest_measurement.hpp"
#include "server/jobs/scheduler_state.hpp"
#include "server/kernel_library.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

constexpr std::chrono::seconds kLongestRetry{30};

bool compiles_for(const OfferedToolchain& toolchain, const JobRow& job) {
  return knows_architecture(toolchain.architectures, job.architecture) &&
         (job.driver_cuda == 0 || driver_loads(job.driver_cuda, toolchain.major));
}

/// Sets a flag for as long as it lives.
class Raised {
 public:
  explicit Raised(bool& flag) : flag_(flag) { flag_ = true; }
  ~Raised() { flag_ = false; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  bool& flag_;
};

}  // namespace

std::uint64_t Scheduler::agent_joined(AgentProfile profile, AgentLink& link) {
  const std::uint64_t id = ++state_->last_agent;
  state_->agents[id] = {std::move(profile), &link, {}};
  state_->agent_expected_until = {};
  if (state_->draining) {
    link.drain();
  }
  state_->watch_memory();
  for (const auto& listener : state_->agent_listeners) {
    listener();
  }
  state_->dispatch();
  return id;
}

void Scheduler::agent_devices(std::uint64_t agent, std::vector<OfferedDevice> devices) {
  const auto found = state_->agents.find(agent);
  if (found == state_->agents.end()) {
    return;
  }
  found->second.profile.devices = std::move(devices);
  state_->watch_memory();
  for (const auto& listener : state_->agent_listeners) {
    listener();
  }
  state_->dispatch();
}

void Scheduler::agent_left(std::uint64_t agent) {
  state_->agents.erase(agent);
  std::vector<std::string> lost;
  for (const auto& [lease, job] : state_->leases) {
    if (job->agent == agent) {
      lost.push_back(job->row.id);
    }
  }
  for (const std::string& id : lost) {
    state_->requeue(*state_->find(id), "the agent left");
  }
  std::vector<std::function<void(const CheckOutcome&, const std::string&)>> unanswered;
  for (auto check = state_->checks.begin(); check != state_->checks.end();) {
    if (check->second.agent == agent) {
      unanswered.push_back(std::move(check->second.done));
      check = state_->checks.erase(check);
    } else {
      ++check;
    }
  }
  for (const auto& done : unanswered) {
    done({}, "the agent that compiled it left");
  }
  for (const auto& listener : state_->agent_listeners) {
    listener();
  }
  state_->dispatch();
}

bool Scheduler::heartbeat(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence) {
  return state_->leased_job(agent, lease_id, fence) != nullptr;
}

void Scheduler::check(CheckOrder order, std::function<void(const CheckOutcome&, const std::string&)> done) {
  JobRow wanted;
  wanted.architecture = order.architecture;
  for (const auto& [id, agent] : state_->agents) {
    if (std::ranges::any_of(agent.profile.toolchains,
                            [&](const auto& item) { return compiles_for(item, wanted); })) {
      order.id = "check-" + std::to_string(++state_->last_lease);
      state_->checks[order.id] = {id, std::move(done)};
      agent.link->check(order);
      return;
    }
  }
  done({}, "no agent is connected that compiles for " + order.architecture);
}

void Scheduler::check_done(const std::string& id, const CheckOutcome& outcome) {
  const auto found = state_->checks.find(id);
  if (found == state_->checks.end()) {
    return;
  }
  const auto done = std::move(found->second.done);
  state_->checks.erase(found);
  done(outcome, "");
}

void Scheduler::State::dispatch() {
  // What watchers submit while jobs are placed is placed by the next tick.
  if (draining || dispatching) {
    return;
  }
  const Raised placing(dispatching);
  // Compiles are short and somebody waits for them; nobody waits for what has an answer already.
  const auto rank = [&](const JobRow& row) {
    return row.kind == JobKind::CompileWinner ? 0 : only_when_idle(row) ? 2 : 1;
  };
  const SteadyTime now = clock.steady_now();
  std::vector<std::pair<int, std::string>> ranked;
  for (const OpenJob& job : jobs) {
    if (!job.leased() && now >= job.not_before) {
      ranked.emplace_back(rank(job.row), job.row.id);
    }
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<int, std::string>::first);
  for (const auto& [order, id] : ranked) {
    if (OpenJob* job = find(id); job && !job->leased()) {
      place(*job);
    }
  }
}

void Scheduler::State::place(OpenJob& job) {
  bool exists = false;
  const auto place = job.row.kind == JobKind::Tune ? find_place(job, exists) : find_compiler(job, exists);
  if (place) {
    const std::string id = job.row.id;
    try {
      grant(job, *place);
    } catch (const std::exception& fault) {
      // Whatever it is, it is this job's alone: the queue goes on.
      const auto* error = dynamic_cast<const Error*>(&fault);
      const bool passing =
          error && (error->code() == ErrorCode::ResourceExhausted || error->code() == ErrorCode::Unavailable);
      log_warning("job " + id + " cannot be granted: " + fault.what());
      if (passing) {
        job.not_before = clock.steady_now() + options.retry_step * 4;
      } else {
        end(job, JobState::Failed, fault.what(), nullptr);
      }
    }
    return;
  }
  if (!exists) {
    mark_without_device(job);
    return;
  }
  const JobState state = waits_behind_foreign_use(job) ? JobState::WaitingForIdleGpu : JobState::Queued;
  if (std::exchange(job.row.state, state) != state) {
    tell(job);
  }
}

bool Scheduler::State::waits_behind_foreign_use(const OpenJob& job) const {
  const auto waits_on = [&](std::uint64_t agent, const OfferedDevice& device) {
    return std::ranges::any_of(leases, [&](const auto& lease) {
      const OpenJob& other = *lease.second;
      return other.agent == agent && other.gpu_uuid == device.uuid &&
             other.row.state == JobState::WaitingForIdleGpu;
    });
  };
  const auto is_free_soon = [&](std::uint64_t agent, const OfferedDevice& device) {
    return device.device.digest == job.row.question.device_class && may_measure(device) &&
           !waits_on(agent, device);
  };
  return job.row.kind == JobKind::Tune && std::ranges::none_of(agents, [&](const auto& item) {
           return std::ranges::any_of(item.second.profile.devices, [&](const OfferedDevice& device) {
             return is_free_soon(item.first, device);
           });
         });
}

void Scheduler::State::mark_without_device(OpenJob& job) {
  if (job.row.state == JobState::NoDevice || clock.steady_now() < agent_expected_until) {
    return;
  }
  job.row.state = JobState::NoDevice;
  tell(job);
}

std::optional<Scheduler::State::Place> Scheduler::State::find_place(const OpenJob& job, bool& exists) const {
  const std::uint64_t needed = std::max(memory_needed(job.row.key), job.needs_bytes);
  std::optional<Place> enough, other;
  bool enough_exists = false;
  for (const auto& [id, agent] : agents) {
    for (const OfferedDevice& device : agent.profile.devices) {
      if (device.device.digest != job.row.question.device_class || !may_measure(device)) {
        continue;
      }
      exists = true;
      const bool is_enough = device.trial_memory_bytes == 0 || device.trial_memory_bytes >= needed;
      enough_exists = enough_exists || is_enough;
      std::optional<Place>& place = is_enough ? enough : other;
      if (!place && !gpu_is_leased(id, device.uuid)) {
        place = Place{id, &device};
      }
    }
  }
  return enough_exists ? enough : other;
}

std::optional<Scheduler::State::Place> Scheduler::State::find_compiler(const OpenJob& job,
                                                                       bool& exists) const {
  for (const auto& [id, agent] : agents) {
    const auto fits = [&](const OfferedToolchain& toolchain) { return compiles_for(toolchain, job.row); };
    if (!std::ranges::any_of(agent.profile.toolchains, fits)) {
      continue;
    }
    exists = true;
    if (compile_leases(id) < options.compile_leases) {
      return Place{id, nullptr};
    }
  }
  return std::nullopt;
}

bool Scheduler::State::gpu_is_leased(std::uint64_t agent, const std::string& uuid) const {
  return std::ranges::any_of(leases, [&](const auto& lease) {
    return lease.second->agent == agent && lease.second->gpu_uuid == uuid;
  });
}

std::uint32_t Scheduler::State::compile_leases(std::uint64_t agent) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(leases, [&](const auto& lease) {
    return lease.second->agent == agent && lease.second->row.kind == JobKind::CompileWinner;
  }));
}

void Scheduler::State::grant(OpenJob& job, const Place& place) {
  const auto kernel = kernels.find(job.row.question.kernel);
  if (kernel->interface != job.row.question.interface) {
    throw Error(ErrorCode::FailedPrecondition, "kernel " + job.row.question.kernel,
                "its interface has changed since the job was submitted");
  }
  JobRow row = job.row;
  row.state = JobState::Running;
  row.fence += 1;
  // Its trials are shared with jobs of other numerics and namespaces: a retune of those has begun anew for
  // all.
  const RecordQuestion measured = job.measured();
  store.read([&](StoreReader& reader) { row.series = std::max(row.series, reader.last_series(measured)); });
  Lease lease;
  lease.id = "lease-" + row.id + "-" + std::to_string(row.fence);
  lease.fence = row.fence;
  lease.job = row;
  lease.job.question = measured;
  lease.facts = place.device ? place.device->device.facts : job.device.facts;
  lease.gpu_uuid = place.device ? place.device->uuid : "";
  lease.lease_ms = static_cast<std::uint32_t>(options.lease.count());
  lease.only_when_idle = only_when_idle(row);
  fill_lease(lease, *kernel, place.device, store, *index.snapshot());
  // The fence is stored before anybody gets it: after a crash the next one is higher still.
  persist(row);

  job.row = std::move(row);
  job.lease_id = lease.id;
  leases[lease.id] = &job;
  job.agent = place.agent;
  job.gpu_uuid = lease.gpu_uuid;
  job.driver = place.device ? place.device->driver : DriverVersion{};
  job.leased_at = clock.steady_now();
  job.leased_until = job.leased_at + options.lease;
  agents.at(place.agent).link->grant(lease);
  tell(job);
}

void Scheduler::State::release(OpenJob& job) {
  if (!job.leased()) {
    return;
  }
  job.row.elapsed_ms += job.leased_ms(clock.steady_now());
  drop_lease(job);
}

void Scheduler::State::drop_lease(OpenJob& job) {
  leases.erase(job.lease_id);
  job.lease_id.clear();
  job.gpu_uuid.clear();
  job.agent = 0;
}

void Scheduler::State::requeue(OpenJob& job, const std::string& reason) {
  release(job);
  job.row.interruptions += 1;
  job.phase.clear();
  if (job.row.interruptions >= options.interruption_limit) {
    end(job, JobState::Failed,
        "interrupted " + std::to_string(job.row.interruptions) + " times in a row, the last time because " +
            reason,
        nullptr);
    return;
  }
  const auto step = options.retry_step * (1u << std::min(job.row.interruptions - 1, 10u));
  job.not_before = clock.steady_now() + std::min<std::chrono::milliseconds>(step, kLongestRetry);
  job.row.state = JobState::Queued;
  log_info("job " + job.row.id + " is queued again: " + reason);
  tell(job);
}

bool Scheduler::State::has_provisional_record(const RecordQuestion& question) const {
  const RecordPtr record = latest_measurement(question, *index.snapshot());
  return record && record->provisional;
}

bool Scheduler::State::only_when_idle(const JobRow& row) const {
  return row.kind == JobKind::Tune && !row.retune && has_provisional_record(row.question);
}

bool Scheduler::State::power_limit_has_changed(const RecordQuestion& question) const {
  const RecordPtr record = latest_measurement(question, *index.snapshot());
  bool other = false;
  for (const auto& [id, agent] : agents) {
    for (const OfferedDevice& device : agent.profile.devices) {
      const std::uint32_t limit = device.device.facts.power_limit_mw;
      if (!record || device.device.digest != question.device_class || limit == 0) {
        continue;
      }
      if (record->timing.power_limit_mw == 0 || record->timing.power_limit_mw == limit) {
        return false;
      }
      other = true;
    }
  }
  return other;
}

void Scheduler::State::wait_for_idle_gpu(OpenJob& job) {
  release(job);
  job.phase.clear();
  job.row.state = JobState::WaitingForIdleGpu;
  const SteadyTime later = clock.steady_now() + options.idle_retry;
  for (OpenJob& other : jobs) {
    const bool same_class = other.row.question.device_class == job.row.question.device_class;
    if (!other.leased() && same_class && only_when_idle(other.row)) {
      other.not_before = std::max(other.not_before, later);
    }
  }
  tell(job);
}

void Scheduler::State::expire_leases() {
  const SteadyTime now = clock.steady_now();
  std::vector<std::string> expired;
  for (const auto& [lease, job] : leases) {
    if (job->leased_until <= now) {
      expired.push_back(job->row.id);
    }
  }
  for (const std::string& id : expired) {
    OpenJob& job = *find(id);
    if (const auto agent = agents.find(job.agent); agent != agents.end()) {
      agent->second.link->end_lease(job.lease_id, "the lease has expired");
    }
    requeue(job, "its lease expired");
  }
}

OpenJob* Scheduler::State::leased_job(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence) {
  if (const auto lease = leases.find(lease_id); lease != leases.end()) {
    OpenJob& job = *lease->second;
    if (job.row.fence == fence && job.agent == agent) {
      job.leased_until = clock.steady_now() + options.lease;
      return &job;
    }
  }
  if (const auto found = agents.find(agent); found != agents.end() && !lease_id.empty()) {
    found->second.link->end_lease(lease_id,
                                  "the lease is over or its fence " + std::to_string(fence) + " is stale");
  }
  return nullptr;
}

}  // namespace cubind
