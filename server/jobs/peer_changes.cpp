#include "server/jobs/peer_changes.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "server/lookup/index.hpp"
#include "server/lookup/lookup.hpp"
#include "server/store/peers.hpp"
#include "server/store/store.hpp"

namespace cubind {

bool PeerChanges::take() {
  if (!owners_.is_shared()) {
    return false;
  }
  const std::uint64_t interruptions = context_.store.peers()->interruptions();
  const bool all = std::exchange(reads_all_, false) || interruptions != interruptions_;
  std::vector<SharedJob> changed;
  std::map<Digest, DeviceClass> classes;
  std::uint64_t last = last_change_;
  try {
    context_.store.read([&](StoreReader& reader) {
      // Numbers of a database that was restored begin earlier.
      last = all ? reader.last_job_change() : last;
      changed = reader.jobs_since(last, all);
      classes = changed.empty() ? classes : reader.device_classes();
    });
    context_.index.catch_up(context_.store);  // has the records of the jobs that have ended by then
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
    take(one, classes);
  }
  find_devices();
  last_change_ = last;
  reads_all_ = reads_all_ || !std::ranges::all_of(jobs_.all(), &JobOwners::is_as_stored);
  taken_at_ = context_.clock.steady_now();
  return true;
}

void PeerChanges::end_missing(const std::vector<SharedJob>& stored) {
  std::set<std::string> ids;
  for (const SharedJob& one : stored) {
    ids.insert(one.job.id);
  }
  std::vector<OpenJob*> missing;
  for (OpenJob& job : jobs_.all()) {
    if (!ids.contains(job.row.id)) {
      missing.push_back(&job);
    }
  }
  for (OpenJob* job : missing) {
    JobRow row = ended(job->row.id).job;
    if (!has_ended(row.state)) {
      row = job->row;
      row.state = v1::Job::CANCELLED;
      row.shown().set_error("it has ended, and the database has forgotten how");
    }
    end(*job, std::move(row));
  }
}

void PeerChanges::take(SharedJob& changed, const std::map<Digest, DeviceClass>& classes) {
  OpenJob* job = jobs_.find(changed.job.id);
  if (changed.job.state == v1::Job::NO_DEVICE) {
    changed.job.state = v1::Job::QUEUED;  // of another daemon's agents
  }
  if (has_ended(changed.job.state)) {
    if (job != nullptr) {
      end(*job, std::move(changed.job));
    }
  } else if (job == nullptr) {
    open(changed, classes);
  } else if (job->change != changed.change) {
    adopt(*job, changed);
  }
}

void PeerChanges::open(SharedJob& changed, const std::map<Digest, DeviceClass>& classes) {
  if (jobs_.find_key(changed.job.key) != nullptr) {
    reads_all_ = true;  // the one before it has ended
    return;
  }
  DeviceClass device;
  device.digest = changed.job.question.device_class;
  device.label = "@" + device.digest.hex().substr(0, 8);
  const auto known = classes.find(device.digest);
  queue_.open(std::move(changed), known == classes.end() ? device : known->second);
}

void PeerChanges::find_devices() {
  for (OpenJob& job : jobs_.all()) {
    if (!job.device.full.empty()) {
      continue;
    }
    for (const OfferedDevice& offered : devices_of(agents_.joined())) {
      job.device = offered.device.digest == job.device.digest ? offered.device : job.device;
    }
  }
}

void PeerChanges::adopt(OpenJob& job, SharedJob& changed) {
  // A Tune may ask for exactly the job's problem. All else that is asked of a leased job raises its fence.
  const bool is_too_small = job.smaller && !changed.job.fact.for_bucket();
  if (job.lease && changed.job.fact.fence() == job.row.fact.fence() && !is_too_small) {
    job.row.fact.set_for_bucket(changed.job.fact.for_bucket());
  } else {
    if (job.lease) {
      owners_.lose(job, "it was asked for again, or another daemon has taken it over");
    }
    job.row = std::move(changed.job);
    job.smaller.reset();
    job.needs_bytes = 0;
    job.not_before = {};
  }
  JobOwners::note(job, changed);
  jobs_.tell(job);
}

void PeerChanges::end(OpenJob& job, JobRow ended) {
  if (job.lease) {
    owners_.lose(job, "another daemon has ended the job");
  }
  job.row = std::move(ended);
  for (const auto& listener : listeners_) {
    listener();
  }
  const RecordPtr record = record_of(job.row);
  queue_.remove(job, record);
}

JobEvent PeerChanges::ended(const std::string& id) const {
  JobEvent event;
  context_.store.read([&](StoreReader& reader) { event.job = reader.job(id).value_or(JobRow{}); });
  event.job.id = id;
  const auto index = context_.index.snapshot();
  const DeviceClass* device = index->device(event.job.question.device_class);
  event.device = device ? device->label : "";
  event.record = record_of(event.job);
  return event;
}

RecordPtr PeerChanges::record_of(const JobRow& ended) const {
  if (ended.state != v1::Job::DONE || !measures(ended) || ended.fact.from_scratch()) {
    return nullptr;
  }
  const auto index = context_.index.snapshot();
  if (const ClassRecords* records = index->records(ended.question)) {
    const auto made =
        std::ranges::find(records->records, ended.id, [](const RecordPtr& record) { return record->job_id; });
    if (made != records->records.end()) {
      return *made;
    }
  }
  return latest_measurement(ended.question, *index);  // its own lost to a better one
}

}  // namespace cubind
