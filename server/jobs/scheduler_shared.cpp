// Several daemons on one database: the open jobs of all are open here too, and each daemon leases what its
// agents can take. A job's row says which daemon has leased it. The database refuses what a daemon writes for
// a job that another one has changed meanwhile (Aborted); then the row is read again.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/jobs/latest_measurement.hpp"
#include "server/jobs/scheduler.hpp"
#include "server/store/peers.hpp"
#include "server/store/store.hpp"

namespace cubind {

void Scheduler::catch_up() {
  if (owners_.is_shared()) {
    take_changes();
    dispatch();
  }
}

void Scheduler::take_changes() {
  const std::uint64_t interruptions = store_.peers()->interruptions();
  const bool all = std::exchange(reads_all_, false) || interruptions != interruptions_;
  std::vector<SharedJob> changed;
  std::map<Digest, DeviceClass> classes;
  std::uint64_t last = last_change_;
  try {
    store_.read([&](StoreReader& reader) {
      // Numbers of a database that was restored begin earlier.
      last = all ? reader.last_job_change() : last;
      changed = reader.jobs_since(last, all);
      classes = changed.empty() ? classes : reader.device_classes();
    });
    index_.catch_up(store_);  // has the records of the jobs that have ended by then
  } catch (const Error&) {
    reads_all_ = reads_all_ || all;
    throw;
  }
  interruptions_ = interruptions;
  if (all) {
    end_missing(changed);
  }
  for (SharedJob& one : changed) {
    last = std::max(last, one.change);
    take_change(one, classes);
  }
  last_change_ = last;
  const auto is_unread = [](const OpenJob& job) { return job.change == 0; };
  reads_all_ = reads_all_ || std::ranges::any_of(jobs_.all(), is_unread);
  caught_up_at_ = clock_.steady_now();
}

void Scheduler::end_missing(const std::vector<SharedJob>& open) {
  std::set<std::string> ids;
  for (const SharedJob& one : open) {
    ids.insert(one.job.id);
  }
  std::vector<OpenJob*> missing;
  for (OpenJob& job : jobs_.all()) {
    if (!ids.contains(job.row.id)) {
      missing.push_back(&job);
    }
  }
  for (OpenJob* job : missing) {
    JobRow ended = ended_elsewhere(job->row.id).job;
    if (!has_ended(ended.state)) {
      ended = job->row;
      ended.state = v1::Job::CANCELLED;
      ended.shown().set_error("it has ended, and the database has forgotten how");
    }
    end_elsewhere(*job, std::move(ended));
  }
}

void Scheduler::take_change(SharedJob& changed, const std::map<Digest, DeviceClass>& classes) {
  OpenJob* job = jobs_.find(changed.job.id);
  if (changed.job.state == v1::Job::NO_DEVICE) {
    changed.job.state = v1::Job::QUEUED;  // of another daemon's agents
  }
  if (has_ended(changed.job.state)) {
    if (job != nullptr) {
      end_elsewhere(*job, std::move(changed.job));
    }
  } else if (job == nullptr) {
    add_of_another(changed, classes);
  } else if (job->change != changed.change) {
    adopt(*job, changed);
  }
}

void Scheduler::adopt(OpenJob& job, SharedJob& changed) {
  // A Tune may ask for exactly the job's problem. All else that is asked of a leased job raises its fence.
  const bool is_too_small = job.smaller && !changed.job.fact.for_bucket();
  if (job.lease && changed.job.fact.fence() == job.row.fact.fence() && !is_too_small) {
    job.row.fact.set_for_bucket(changed.job.fact.for_bucket());
  } else {
    if (job.lease) {
      lose(job, "it was asked for again, or another daemon has taken it over");
    }
    job.row = std::move(changed.job);
    job.smaller.reset();
    job.needs_bytes = 0;
    job.not_before = {};
  }
  job.change = changed.change;
  job.owner = std::move(changed.owner);
  jobs_.tell(job);
}

void Scheduler::add_of_another(SharedJob& changed, const std::map<Digest, DeviceClass>& classes) {
  if (jobs_.find_key(changed.job.key) != nullptr) {
    reads_all_ = true;  // the one before it has ended
    return;
  }
  DeviceClass device;
  device.digest = changed.job.question.device_class;
  device.label = "@" + device.digest.hex().substr(0, 8);
  const auto known = classes.find(device.digest);
  const ToolchainNeed needs = needs_of(changed.job);
  OpenJob& job = jobs_.add(std::move(changed.job), known == classes.end() ? device : known->second, needs);
  find_device(job);
  job.change = changed.change;
  job.owner = std::move(changed.owner);
}

void Scheduler::find_device(OpenJob& job) const {
  for (const OfferedDevice& offered : devices_of(agents_)) {
    if (job.device.full.empty() && offered.device.digest == job.device.digest) {
      job.device = offered.device;
    }
  }
}

RecordPtr Scheduler::record_of(const JobRow& ended) const {
  if (ended.state != v1::Job::DONE || ended.kind != v1::Job::TUNE || ended.fact.from_scratch()) {
    return nullptr;
  }
  const auto index = index_.snapshot();
  if (const ClassRecords* records = index->records(ended.question)) {
    const auto made =
        std::ranges::find(records->records, ended.id, [](const RecordPtr& record) { return record->job_id; });
    if (made != records->records.end()) {
      return *made;
    }
  }
  return latest_measurement(ended.question, *index);  // a better one was there
}

void Scheduler::end_elsewhere(OpenJob& job, JobRow ended) {
  if (job.lease) {
    lose(job, "another daemon has ended the job");
  }
  job.row = std::move(ended);
  failures_.note(job.row);
  for (const auto& listener : elsewhere_listeners_) {
    listener();
  }
  JobEvent last = jobs_.event(job);
  last.record = record_of(job.row);
  jobs_.remove(job, last);
}

JobEvent Scheduler::ended_elsewhere(const std::string& id) {
  JobEvent event;
  store_.read([&](StoreReader& reader) { event.job = reader.job(id).value_or(JobRow{}); });
  event.job.id = id;
  const auto index = index_.snapshot();
  const DeviceClass* device = index->device(event.job.question.device_class);
  event.device = device ? device->label : "";
  event.record = record_of(event.job);
  return event;
}

void Scheduler::lose(OpenJob& job, const std::string& why) {
  if (job.lease) {
    log_info("job " + job.row.id + " is no longer this daemon's: " + why);
    end_lease_at_agent(job, why);
    jobs_.end_lease(job);
  }
  job.stage.clear();
  job.change = 0;
}

void Scheduler::release(OpenJob& job) {
  if (!owners_.is_shared() || job.change == 0) {
    return;
  }
  try {
    persist(job, job.row, owners_.resting_owner(job.row));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Aborted) {
      lose(job, error.what());
    } else {
      log_info("job " + job.row.id + " stays this daemon's: " + error.what());
    }
  }
}

void Scheduler::on_job_ended_elsewhere(std::function<void()> listener) {
  elsewhere_listeners_.push_back(std::move(listener));
}

}  // namespace cubind
