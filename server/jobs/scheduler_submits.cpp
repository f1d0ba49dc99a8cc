// Jobs that callers ask for: new ones, and what a further question changes in an open one.
#include <utility>

#include "base/error.hpp"
#include "server/jobs/new_id.hpp"
#include "server/jobs/scheduler.hpp"
#include "server/kernel_library.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

/// Whether a job that is done has measured what this one would.
bool does(const JobRow& done, const JobRow& asked) {
  return asked.kind == v1::Job::TUNE && !asked.fact.retune() &&
         (asked.fact.for_bucket() || !done.fact.for_bucket()) &&
         (done.listed.empty() || !asked.listed.empty()) && allows_as_much(done.budget, asked.budget);
}

}  // namespace

JobEvent Scheduler::submit_tune(const RecordQuestion& question, const DeviceClass& device, bool retune) {
  return submit_tunes({{question, device}}, retune).front();
}

std::vector<JobEvent> Scheduler::submit_tunes(const std::vector<TuneOrder>& orders, bool retune) {
  std::vector<std::string> ids;
  try {
    for (const TuneOrder& order : orders) {
      JobRow row;
      row.kind = v1::Job::TUNE;
      row.question = order.question;
      row.fact.set_from_scratch(order.from_scratch);
      row.key = tuning_key(row);
      row.fact.set_rounds(order.rounds);
      row.fact.set_untrusted(order.untrusted);
      row.fact.set_retune(retune || order.from_scratch || power_limit_has_changed(order.question));
      row.fact.set_for_bucket(order.for_bucket);
      row.listed = order.listed;
      row.shown().set_note(order.listed.empty() ? "" : "measures the best of an earlier search again");
      if (order.budget) {
        row.budget = *order.budget;
      } else if (const OpenJob* open = jobs_.find_key(row.key)) {
        row.budget = open->row.budget;
        row.listed = open->row.listed;
      }
      ids.push_back(enqueue(row, order.device, order.caller));
      if (order.awaited) {
        await(ids.back());
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
  row.kind = v1::Job::COMPILE_WINNER;
  row.key = order.key;
  row.question = order.question;
  row.listed = order.configurations;
  row.fact.set_architecture(order.architecture);
  row.fact.set_driver_cuda(order.driver_cuda);
  return dispatched({enqueue(row, order.device, caller)}).front();
}

std::string Scheduler::enqueue(const JobRow& row, const DeviceClass& device, const std::string& caller) {
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

std::string Scheduler::try_to_enqueue(JobRow row, const DeviceClass& device, const std::string& caller) {
  if (OpenJob* job = jobs_.find_key(row.key)) {
    job->device = device;
    ask_again(*job, row);
    job->is_asked_here = true;
    return job->row.id;
  }
  refuse_more_jobs();
  CallerLimits::Hold counted;
  if (options_.limits != nullptr) {
    counted = options_.limits->take(caller, row.kind == v1::Job::TUNE ? Held::Jobs : Held::Compiles);
  }
  row.id = new_id();
  row.shown().set_created_at(clock_.wall_text());
  SharedJob stored = store_new(row, device);
  if (has_ended(stored.job.state)) {
    take_changes();  // with its record
    return stored.job.id;
  }
  const bool is_of_another = stored.job.id != row.id;
  const ToolchainNeed needs = needs_of(row);
  OpenJob& job = jobs_.add(std::move(stored.job), device, needs);
  job.change = stored.change;
  job.owner = std::move(stored.owner);
  job.is_asked_here = true;
  job.caller = caller;
  job.counted = std::move(counted);
  if (is_of_another) {
    ask_again(job, row);
  }
  return job.row.id;
}

void Scheduler::refuse_more_jobs() const {
  if (draining_) {
    throw Error(ErrorCode::Unavailable, "daemon", "is shutting down");
  }
  if (jobs_.all().size() >= options_.queue_limit) {
    throw Error(
        ErrorCode::ResourceExhausted, "job queue",
        "holds " + std::to_string(jobs_.all().size()) + " jobs, its limit: wait until some have ended");
  }
}

SharedJob Scheduler::store_new(JobRow row, const DeviceClass& device) {
  SharedJob stored{.job = std::move(row), .change = 0, .owner = {}};
  stored.owner = owners_.resting_owner(stored.job);
  store_.write([&](StoreWriter& writer) {
    if (auto open = writer.open_job(stored.job.key)) {
      stored = *std::move(open);
      return;
    }
    // This daemon, which has not read of it yet, would measure it again.
    if (auto done = writer.job_done_since(stored.job.key, last_change_);
        done && does(done->job, stored.job)) {
      stored = *std::move(done);
      return;
    }
    stored.job.fact.set_series(last_series(writer, stored.job.question) + (stored.job.fact.retune() ? 1 : 0));
    writer.put_device_class(device);
    stored.change = writer.put_job(stored.job, stored.owner);
  });
  return stored;
}

std::uint32_t Scheduler::last_series(StoreReader& reader, const RecordQuestion& question) const {
  return reader.last_series(question, order_.source_of(question.kernel));
}

ToolchainNeed Scheduler::needs_of(const JobRow& row) const {
  try {
    const bool is_foreign = options_.is_foreign && options_.is_foreign(row.question.kernel);
    return toolchain_need(*kernels_.find(row.question.kernel)->spec, is_foreign, row.fact.architecture(),
                          row.fact.driver_cuda());
  } catch (const Error&) {
    return {
        {}, row.fact.architecture(), row.fact.driver_cuda()};  // it fails when it is granted, and tells why
  }
}

void Scheduler::ask_again(OpenJob& job, const JobRow& asked) {
  const bool only_exactly = job.row.fact.for_bucket() && !asked.fact.for_bucket();
  if (!asked.listed.empty() && job.row.listed.empty()) {
    return;  // a search is more
  }
  const bool searches = asked.listed.empty() && !job.row.listed.empty();
  const bool searches_on = searches || !allows_as_much(job.row.budget, asked.budget);
  if ((asked.fact.retune() && !job.row.fact.retune()) || (only_exactly && job.smaller) || searches_on) {
    begin_anew(job, asked);
  } else if (only_exactly) {
    JobRow exact = job.row;
    exact.fact.set_for_bucket(false);
    persist(job, exact, job.owner);
    job.row = std::move(exact);
  }
}

void Scheduler::begin_anew(OpenJob& job, const JobRow& asked) {
  JobRow row = job.row;
  row.fact.set_retune(row.fact.retune() || asked.fact.retune());
  row.fact.set_for_bucket(row.fact.for_bucket() && asked.fact.for_bucket());
  row.listed = asked.listed;
  row.fact.set_rounds(asked.fact.rounds());
  if (!allows_as_much(row.budget, asked.budget)) {
    row.budget = asked.budget;
  }
  row.shown().clear_note();
  row.state = v1::Job::QUEUED;
  // The holder of its lease writes nothing more. A job that was never leased still gets its hints.
  row.fact.set_fence(row.fact.fence() + (owners_.is_shared() && row.fact.fence() > 0 ? 1 : 0));
  const std::string owner = owners_.resting_owner(row);
  std::uint64_t change = 0;
  store_.write([&](StoreWriter& writer) {
    writer.require_unchanged(row.id, job.change);
    // A search that only goes on keeps what it has measured.
    if ((asked.fact.retune() && !job.row.fact.retune()) || job.smaller) {
      row.fact.set_series(last_series(writer, row.question) + (row.fact.retune() ? 1 : 0));
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

}  // namespace cubind
