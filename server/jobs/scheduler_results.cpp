// What agents send of the jobs that are leased to them, and how those go on from there.
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/failpoint.hpp"
#include "base/log.hpp"
#include "server/jobs/job_results.hpp"
#include "server/jobs/latest_measurement.hpp"
#include "server/jobs/result_check.hpp"
#include "server/jobs/scheduler.hpp"
#include "server/kernel_library.hpp"
#include "server/lookup/lookup.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

constexpr int kMaxStages = 256;  // of all leases of a job

using Stages = google::protobuf::RepeatedPtrField<StageTime>;

void add_stages(const Stages& lease, Stages& job) {
  for (const StageTime& one : lease) {
    const auto at = std::ranges::find(job, one.stage(), &StageTime::stage);
    if (at == job.end() && job.size() < kMaxStages) {
      *job.Add() = one;
    } else if (at != job.end()) {
      at->set_ms(at->ms() + one.ms());
    }
  }
}

}  // namespace

bool Scheduler::progress(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                         const v1::Progress& progress) {
  OpenJob* job = leased_job(agent, lease_id, fence);
  if (!job) {
    return false;
  }
  job->stage = progress.stage();
  job->waits_because = progress.waits_because();
  job->best_us = progress.best_us();
  job->row.shown().set_configurations(progress.configurations());
  job->row.shown().set_configurations_done(
      std::min(progress.configurations_done(), progress.configurations()));
  job->row.shown().set_nvrtc_calls(progress.nvrtc_calls());
  const JobState now =
      progress.state() == v1::Job::WAITING_FOR_IDLE_GPU ? v1::Job::WAITING_FOR_IDLE_GPU : v1::Job::RUNNING;
  const bool changed = std::exchange(job->row.state, now) != now;
  if (changed && now == v1::Job::RUNNING && !placement_.another_is_free(*job)) {
    job->lease->last_result = clock_.steady_now();  // it has waited for an idle GPU
  }
  note_use_of_lent_gpu(*job, progress.is_lent());
  jobs_.tell(*job);
  if (changed && owners_.is_shared() && !store_state(*job)) {
    return false;
  }
  if (changed) {
    dispatch();  // the jobs queued behind it wait for the same
  }
  return true;
}

bool Scheduler::store_state(OpenJob& job) {
  try {
    persist(job, job.row, owners_.self());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Aborted) {
      lose(job, error.what());
      return false;
    }
    log_info("job " + job.row.id + ": its state is not stored: " + error.what());
  }
  return true;
}

bool Scheduler::store_batch(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                            WorkBatch batch) {
  OpenJob* job = leased_job(agent, lease_id, fence);
  if (!job) {
    return false;
  }
  try {
    if (store_job_batch(*job, agents_.at(agent).profile, batch, store_)) {
      job->lease->last_result = clock_.steady_now();
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::InvalidArgument) {
      refuse(*job, error);
      return false;
    }
    if (error.code() == ErrorCode::Aborted) {
      lose(*job, error.what());
      return false;
    }
    // Nothing of the batch is stored and nothing is acknowledged: the work is done again when the store takes
    // writes.
    agents_.at(agent).link->end_lease(lease_id, std::string("the batch cannot be stored: ") + error.what());
    give_up(*job, error);
    return false;
  }
  job->row.fact.set_interruptions(0);
  if (!batch.blocks.empty()) {
    conditions_[job->lease->gpu_uuid] = batch.blocks.back().block().conditions();
  }
  for (const ArtifactUpload& upload : batch.artifacts) {
    for (const auto& listener : artifact_listeners_) {
      listener(upload.row);
    }
  }
  return true;
}

void Scheduler::refuse(OpenJob& job, const Error& error) {
  const std::string& agent = agents_.at(job.lease->agent).profile.id;
  log_warning("job " + job.row.id + ": what agent " + agent + " reports is refused: " + error.what());
  if (++job.refusals >= options_.refusal_limit) {
    end_lease_at_agent(job, error.what());
    end(job, v1::Job::FAILED, std::string("an agent's results were refused: ") + error.what(), nullptr);
    return;
  }
  const std::string reason = std::string("its results were refused: ") + error.what();
  if (dynamic_cast<const UnstableWinner*>(&error) == nullptr) {
    take_back(job, reason);
    return;
  }
  // No fault of the agent. Its next lease has the failed verification, and it goes on with the next finalist.
  end_lease_at_agent(job, reason);
  requeue(job, reason);
}

void Scheduler::give_up(OpenJob& job, const Error& error) {
  if (!is_passing(error)) {
    end(job, v1::Job::FAILED, error.what(), nullptr);
    return;
  }
  // No interruption: however long a disk was full, the job goes on as soon as there is room.
  jobs_.end_lease(job);
  job.stage.clear();
  try_later(job);
  job.row.state = v1::Job::QUEUED;
  job.refusal = error.what();
  log_info("job " + job.row.id + " is queued until the store takes writes: " + error.what());
  jobs_.tell(job);
}

bool Scheduler::finish(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                       WorkResult result) {
  OpenJob* job = leased_job(agent, lease_id, fence);
  if (!job) {
    return false;
  }
  const v1::JobResult& told = result.told;
  const v1::Job before = job->row.shown();
  *job->row.shown().mutable_outcomes() = told.outcomes();
  add_stages(told.stages(), *job->row.shown().mutable_stages());
  const bool is_smaller = told.status() == v1::JobResult::SMALLER,
             is_back = told.status() == v1::JobResult::INTERRUPTED;
  const bool gpu_in_use = job->row.state == v1::Job::WAITING_FOR_IDLE_GPU;
  if (is_back && gpu_in_use && order_.only_when_idle(job->row)) {
    wait_for_idle_gpu(*job);
  } else if (is_back && agents_.at(agent).is_leaving) {
    hand_on(*job);
  } else if (is_back) {
    requeue(*job, told.error().empty() ? "the agent handed it back" : told.error());
  } else if (told.needs_bytes() > 0 && move_to_more_room(*job, result)) {
    // It goes on there.
  } else if (told.status() == v1::JobResult::FAILED || (is_smaller && !job->row.fact.for_bucket())) {
    job->row.fact.set_needs_bytes(told.needs_bytes());
    end(*job, v1::Job::FAILED, told.error(), nullptr);
  } else {
    try {
      is_smaller ? measure_smaller(*job, result) : complete_tune(*job, result);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::InvalidArgument) {
        job->row.shown() = before;
        refuse(*job, error);
        dispatch();
        return false;
      }
      if (error.code() == ErrorCode::Aborted) {
        lose(*job, error.what());
        dispatch();
        return false;
      }
      give_up(*job, error);
    }
  }
  dispatch();
  return true;
}

void Scheduler::complete_tune(OpenJob& job, WorkResult& result) {
  JobRow row = jobs_.event(job).job;
  row.state = v1::Job::DONE;
  row.shown().set_finished_at(clock_.wall_text());
  RecordRow& record = result.record;
  const bool is_tune = row.kind == v1::Job::TUNE;
  const bool has_record = is_tune && !row.fact.from_scratch();
  store_.write([&](StoreWriter& writer) {
    writer.require_fence(row.id, row.fact.fence());
    if (is_tune) {
      check_result(job, result, writer);
      complete_record(job, row, record, writer);
      keep_search(job, record);
    }
    if (has_record) {
      writer.put_device_class(job.device);
      writer.put_record(record);
      writer.drop_want(row.question);
    }
    writer.put_job(row);
    failpoint("store.commit");
  });
  RecordPtr published = is_tune ? std::make_shared<const RecordRow>(record) : nullptr;
  if (has_record) {
    const RecordPtr before = latest_measurement(record.question, *index_.snapshot());
    index_.refresh(store_, record.question);
    published = stored_record(record, *index_.snapshot());
    const RecordPtr now = latest_measurement(record.question, *index_.snapshot());
    totals_.winner_changes += before && now && before->configuration != now->configuration ? 1 : 0;
  }
  const DeviceClass device = job.device;
  jobs_.end_lease(job);
  job.row = row;
  end(job, v1::Job::DONE, "", std::move(published));
  if (has_record) {
    measure_again_when_idle(record.question, device);
  }
}

void Scheduler::keep_search(const OpenJob& job, RecordRow& record) const {
  const RecordPtr before = latest_measurement(record.question, *index_.snapshot());
  if (job.row.listed.empty() || record.search.complete() || !before || !owners_.knows(record.question)) {
    return;
  }
  const bool same_terms = before->search.space() == record.search.space() &&
                          driver_branch(before->driver.version) == driver_branch(record.driver.version) &&
                          before->toolchain.name == record.toolchain.name &&
                          before->question.policy == record.question.policy &&
                          has_same_limit(before->timing, job.device.facts).value_or(true);
  const auto carried = carry_over(*kernels_.find(record.question.kernel)->spec, *before, job.device.facts);
  if (same_terms && carried && !carried->other_revision) {
    record.search = before->search;
  }
}

bool Scheduler::move_to_more_room(OpenJob& job, const WorkResult& result) {
  // Once: the offered memory may have been taken meanwhile, and two GPUs could send the job to and fro
  // forever.
  if (job.needs_bytes != 0 || !placement_.more_room_exists(job, result.told.needs_bytes())) {
    return false;
  }
  log_info("job " + job.row.id + " goes to another GPU: " + result.told.error());
  jobs_.end_lease(job);
  job.needs_bytes = result.told.needs_bytes();
  job.row.state = v1::Job::QUEUED;
  job.stage.clear();
  jobs_.tell(job);
  return true;
}

void Scheduler::measure_smaller(OpenJob& job, const WorkResult& result) {
  const auto kernel = kernels_.find(job.row.question.kernel);
  const Problem before = job.measured().problem;
  const Problem problem = kernel->spec->canonicalize(result.smaller_problem, "result.smaller_problem");
  const bool same_bucket = kernel->spec->representative(problem) == kernel->spec->representative(before);
  const auto shrinks = [](const NamedValue& now, const NamedValue& then) { return now.value <= then.value; };
  if (!same_bucket || problem == before || !std::ranges::equal(problem.dims, before.dims, shrinks)) {
    throw Error(ErrorCode::InvalidArgument, "result.smaller_problem",
                to_string(problem) + " is not a smaller problem of the bucket of " + to_string(before));
  }
  log_info("job " + job.row.id + " measures " + to_string(problem) + ": " + result.told.error());
  jobs_.end_lease(job);
  job.smaller = problem;
  job.needs_bytes = 0;
  job.row.shown().set_note(result.told.error());
  job.row.state = v1::Job::QUEUED;
  job.row.fact.set_series(0);
  store_.read([&](StoreReader& reader) {
    job.row.fact.set_series(last_series(reader, job.measured()) + (job.row.fact.retune() ? 1 : 0));
  });
  job.stage.clear();
  jobs_.tell(job);
}

void Scheduler::measure_again_when_idle(const RecordQuestion& question, const DeviceClass& device) {
  if (!order_.has_provisional_record(question)) {
    return;
  }
  JobRow row;
  row.kind = v1::Job::TUNE;
  row.question = question;
  row.key = tuning_key(row);
  try {
    enqueue(row, device, "");
  } catch (const Error& error) {
    // The next start of the daemon tries again.
    log_warning("a provisional record is not measured again: " + std::string(error.what()));
  }
}

}  // namespace cubind
