#include "server/jobs/submissions.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/jobs/new_id.hpp"
#include "server/lookup/lookup.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

constexpr int kMostAttempts = 5;

/// Whether a job that is done has measured what this one would.
bool does(const JobRow& done, const JobRow& asked) {
  return measures(asked) && !asked.fact.retune() && (asked.fact.for_bucket() || !done.fact.for_bucket()) &&
         (done.listed.empty() || !asked.listed.empty()) && allows_as_much(done.budget, asked.budget);
}

}  // namespace

std::string Submissions::tune(const TuneOrder& order, bool retune) {
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
  std::string id = submit(row, order.device, order.caller);
  if (OpenJob* job = order.awaited ? jobs_.find(id) : nullptr) {
    job->await();
  }
  return id;
}

std::string Submissions::compile(const CompileOrder& order, const std::string& caller) {
  JobRow row;
  row.kind = v1::Job::COMPILE_WINNER;
  row.key = order.key;
  row.question = order.question;
  row.listed = order.configurations;
  row.fact.set_architecture(order.architecture);
  row.fact.set_driver_cuda(order.driver_cuda);
  return submit(row, order.device, caller);
}

void Submissions::measure_again(const RecordQuestion& question, const DeviceClass& device) {
  const RecordPtr record = latest_measurement(question, *context_.index.snapshot());
  if (!record || !record->provisional) {
    return;
  }
  JobRow row;
  row.kind = v1::Job::TUNE;
  row.question = question;
  row.key = tuning_key(row);
  try {
    submit(row, device, "");
  } catch (const Error& error) {
    // The next start of the daemon tries again.
    log_warning("a provisional record is not measured again: " + std::string(error.what()));
  }
}

void Submissions::measure_all_again() {
  const auto devices = context_.index.snapshot()->devices();
  for (const RecordPtr& record : context_.index.snapshot()->all()) {
    const auto device = devices.find(record->question.device_class);
    if (device != devices.end() && owners_.knows(record->question)) {
      measure_again(record->question, device->second);
    }
  }
}

std::string Submissions::submit(const JobRow& row, const DeviceClass& device, const std::string& caller) {
  for (int attempt = 1;; ++attempt) {
    try {
      return try_to_submit(row, device, caller);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Aborted || attempt == kMostAttempts) {
        throw;
      }
      peers_.take();
    }
  }
}

std::string Submissions::try_to_submit(JobRow row, const DeviceClass& device, const std::string& caller) {
  if (OpenJob* job = jobs_.find_key(row.key)) {
    job->device = device;
    ask_again(*job, row);
    job->is_asked_here = true;
    return job->row.id;
  }
  refuse_more_jobs();
  CallerLimits::Hold counted;
  if (context_.options.limits != nullptr) {
    counted = context_.options.limits->take(caller, measures(row) ? Held::Jobs : Held::Compiles);
  }
  row.id = new_id();
  row.shown().set_created_at(context_.clock.wall_text());
  SharedJob stored = store_new(row, device);
  if (has_ended(stored.job.state)) {
    peers_.take();  // with its record
    return stored.job.id;
  }
  const bool is_of_another = stored.job.id != row.id;
  OpenJob& job = queue_.open(std::move(stored), device);
  job.is_asked_here = true;
  job.caller = caller;
  job.counted = std::move(counted);
  if (is_of_another) {
    ask_again(job, row);
  }
  return job.row.id;
}

void Submissions::refuse_more_jobs() const {
  if (queue_.draining()) {
    throw Error(ErrorCode::Unavailable, "daemon", "is shutting down");
  }
  const std::size_t open = jobs_.all().size();
  if (open >= context_.options.queue_limit) {
    throw Error(ErrorCode::ResourceExhausted, "job queue",
                "holds " + std::to_string(open) + " jobs, its limit: wait until some have ended");
  }
}

SharedJob Submissions::store_new(JobRow row, const DeviceClass& device) {
  SharedJob stored{.job = std::move(row), .change = 0, .owner = {}};
  stored.owner = owners_.resting_owner(stored.job);
  context_.store.write([&](StoreWriter& writer) {
    if (auto open = writer.open_job(stored.job.key)) {
      stored = *std::move(open);
      return;
    }
    // This daemon, which has not read of it yet, would measure it again.
    if (auto done = writer.job_done_since(stored.job.key, peers_.last_change());
        done && does(done->job, stored.job)) {
      stored = *std::move(done);
      return;
    }
    stored.job.fact.set_series(queue_.next_series(writer, stored.job));
    writer.put_device_class(device);
    stored.change = writer.put_job(stored.job, stored.owner);
  });
  return stored;
}

void Submissions::ask_again(OpenJob& job, const JobRow& asked) {
  const bool only_exactly = job.row.fact.for_bucket() && !asked.fact.for_bucket();
  if (!asked.listed.empty() && job.row.listed.empty()) {
    return;  // a search is more
  }
  const bool searches = asked.listed.empty() && !job.row.listed.empty();
  const bool searches_on = searches || !allows_as_much(job.row.budget, asked.budget);
  if ((asked.fact.retune() && !job.row.fact.retune()) || (only_exactly && job.smaller) || searches_on) {
    restart(job, asked);
  } else if (only_exactly) {
    JobRow exact = job.row;
    exact.fact.set_for_bucket(false);
    owners_.change(job, std::move(exact));
  }
}

void Submissions::restart(OpenJob& job, const JobRow& asked) {
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
  owners_.restart(job, row, [&](StoreWriter& writer) {
    // A search that only goes on keeps what it has measured.
    if ((asked.fact.retune() && !job.row.fact.retune()) || job.smaller) {
      row.fact.set_series(queue_.next_series(writer, row));
    }
  });
  job.row = std::move(row);
  job.smaller.reset();
  job.needs_bytes = 0;
  job.stage.clear();
  job.not_before = {};
  jobs_.tell(job);
}

bool Submissions::power_limit_has_changed(const RecordQuestion& question) const {
  const RecordPtr record = latest_measurement(question, *context_.index.snapshot());
  bool other = false;
  for (const OfferedDevice& device : devices_of(agents_.joined())) {
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
