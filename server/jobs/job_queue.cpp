#include "server/jobs/job_queue.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "server/kernel_library.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

constexpr std::chrono::seconds kLongestRetry{30};
constexpr std::chrono::seconds kBetweenLooksForKernels{2};

}  // namespace

void JobQueue::load_jobs() {
  fail_damaged_jobs();
  std::vector<JobRow> rows;
  std::map<Digest, DeviceClass> devices;
  context_.store.read([&](StoreReader& reader) {
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
    open({std::move(row), 0, {}}, device->second);
  }
}

void JobQueue::fail_damaged_jobs() {
  try {
    context_.store.write([](StoreWriter& writer) { writer.fail_damaged_jobs(); });
  } catch (const Error& error) {
    // The store is read-only: they stay open in the file, and no agent gets them.
    log_warning(std::string("damaged jobs are not ended: ") + error.what());
  }
}

void JobQueue::fail_before_loaded(JobRow row, std::string error) {
  log_error("job " + row.id + " has failed: " + error);
  row.state = v1::Job::FAILED;
  row.shown().set_error(std::move(error));
  row.shown().set_finished_at(context_.clock.wall_text());
  try {
    context_.store.write([&](StoreWriter& writer) { writer.put_job(row); });
  } catch (const Error& fault) {
    log_warning("job " + row.id + ": its end is not stored: " + fault.what());
  }
}

void JobQueue::load_failures() {
  forget_old_jobs();
  std::vector<JobRow> rows;
  context_.store.read([&](StoreReader& reader) { rows = reader.out_of_memory_jobs(); });
  for (const JobRow& row : rows) {
    failures_.note(row);
  }
}

void JobQueue::forget_old_jobs() {
  ended_since_ = 0;
  const std::string before = iso8601_utc(context_.clock.wall_now() - context_.options.job_memory);
  context_.store.write_behind([before](StoreWriter& writer) { writer.forget_jobs(before); });
}

void JobQueue::tick() {
  end_jobs_without_kernel();
  if (ended_since_ >= context_.options.forget_after) {
    forget_old_jobs();
  }
}

void JobQueue::end_jobs_without_kernel() {
  const auto now = context_.clock.steady_now();
  if (now < next_look_for_kernels_) {
    return;
  }
  next_look_for_kernels_ = now + kBetweenLooksForKernels;
  std::vector<std::pair<OpenJob*, std::string>> gone;
  for (OpenJob& job : jobs_.all()) {
    try {
      if (!job.lease && owners_.answers_for(job)) {
        context_.kernels.find(job.row.question.kernel);
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::NotFound) {
        gone.emplace_back(&job, error.what());
      }
    }
  }
  for (const auto& [job, error] : gone) {
    fail(*job, error +
                   ": its spec was removed, or its definition made room for others, and its caller sends "
                   "it again");
  }
}

OpenJob& JobQueue::open(SharedJob stored, const DeviceClass& device) {
  const ToolchainNeed needs = needs_of(stored.job);
  OpenJob& job = jobs_.add(std::move(stored.job), device, needs);
  JobOwners::note(job, stored);
  return job;
}

ToolchainNeed JobQueue::needs_of(const JobRow& row) const {
  const auto& is_foreign = context_.options.is_foreign;
  const std::string& kernel = row.question.kernel;
  try {
    return toolchain_need(*context_.kernels.find(kernel)->spec, is_foreign && is_foreign(kernel),
                          row.fact.architecture(), row.fact.driver_cuda());
  } catch (const Error&) {
    return {
        {}, row.fact.architecture(), row.fact.driver_cuda()};  // it fails when it is granted, and tells why
  }
}

void JobQueue::end(OpenJob& job, JobState state, std::string error, RecordPtr record) {
  job.row.state = state;
  job.row.shown().set_error(std::move(error));
  job.row.shown().set_finished_at(context_.clock.wall_text());
  leases_.end(job);
  // Its result is stored with the job's end.
  if (state != v1::Job::DONE && !owners_.keep_end(job)) {
    return;
  }
  ++ended_since_;
  ++totals_.ended[state];
  for (const OutcomeCount& count : job.row.shown().outcomes()) {
    totals_.trials[outcome_from_wire(count.outcome(), "outcome")] += count.count();
  }
  remove(job, std::move(record));
}

void JobQueue::remove(OpenJob& job, RecordPtr record) {
  failures_.note(job.row);
  JobEvent last = jobs_.event(job);
  last.record = std::move(record);
  jobs_.remove(job, last);
}

void JobQueue::put_back_here(OpenJob& job) {
  leases_.end(job, v1::Job::QUEUED);
  jobs_.tell(job);
}

void JobQueue::put_back(OpenJob& job, JobState state) {
  leases_.end(job, state);
  owners_.release(job);
  jobs_.tell(job);
}

void JobQueue::interrupt(OpenJob& job, const std::string& reason) {
  leases_.end(job, v1::Job::QUEUED);
  const std::uint32_t interruptions = job.row.fact.interruptions() + 1;
  job.row.fact.set_interruptions(interruptions);
  if (interruptions >= context_.options.interruption_limit) {
    fail(job,
         "interrupted " + std::to_string(interruptions) + " times in a row, the last time because " + reason);
    return;
  }
  const auto step = context_.options.retry_step * (1u << std::min(interruptions - 1, 10u));
  job.not_before = context_.clock.steady_now() + std::min<std::chrono::milliseconds>(step, kLongestRetry);
  log_info("job " + job.row.id + " is queued again: " + reason);
  put_back(job);
}

void JobQueue::hand_back(OpenJob& job, bool agent_leaves, const std::string& why) {
  if (job.row.state == v1::Job::WAITING_FOR_IDLE_GPU && order_.only_when_idle(job.row)) {
    wait_for_idle_gpu(job);
  } else if (agent_leaves) {
    put_back(job);
  } else {
    interrupt(job, why);
  }
}

void JobQueue::take_back(OpenJob& job, const std::string& reason) {
  job.avoided.insert(job.lease->agent_key);
  leases_.withdraw(job, reason);
  interrupt(job, reason);
}

void JobQueue::wait_for_idle_gpu(OpenJob& job) {
  leases_.end(job);
  const auto later = context_.clock.steady_now() + context_.options.idle_retry;
  for (OpenJob& other : jobs_.all()) {
    const bool same_class = other.row.question.device_class == job.row.question.device_class;
    if (!other.lease && same_class && order_.only_when_idle(other.row)) {
      other.not_before = std::max(other.not_before, later);
    }
  }
  put_back(job, v1::Job::WAITING_FOR_IDLE_GPU);
}

void JobQueue::give_up(OpenJob& job, const Error& error) {
  if (!is_transient(error)) {
    fail(job, error.what());
    return;
  }
  // No interruption: however long a disk was full, the job goes on as soon as there is room.
  try_later(job);
  job.refusal = error.what();
  log_info("job " + job.row.id + " is queued until the store takes writes: " + error.what());
  put_back_here(job);
}

std::uint32_t JobQueue::next_series(StoreReader& reader, const JobRow& row) const {
  return order_.last_series(reader, row.question) + (row.fact.retune() ? 1 : 0);
}

void JobQueue::try_later(OpenJob& job) const {
  job.not_before = context_.clock.steady_now() + context_.options.retry_step * 4;
}

bool JobQueue::is_transient(const Error& error) {
  return error.code() == ErrorCode::ResourceExhausted || error.code() == ErrorCode::Unavailable;
}

std::uint32_t JobQueue::running() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      jobs_.all(), [this](const OpenJob& job) { return job.lease || owners_.is_elsewhere(job); }));
}

}  // namespace cubind
