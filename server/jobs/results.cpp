#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/failpoint.hpp"
#include "base/log.hpp"
#include "server/jobs/scheduler_state.hpp"
#include "server/kernel_library.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

bool is_storage_fault(const Error& error) {
  return error.code() == ErrorCode::ResourceExhausted || error.code() == ErrorCode::Unavailable;
}

/// What came of a GPU that plays a table back is not a measurement, whatever the agent calls it.
Evidence evidence_for(const DeviceFacts& facts) {
  return facts.replay_table.empty() ? Evidence::Measured : Evidence::Replayed;
}

/// The row that the job has stored. Others may have the same trial: an imported one, one of an earlier job.
/// Where a better record stands none was stored.
RecordPtr stored_record(const RecordRow& record, const IndexSnapshot& index) {
  const ClassRecords* records = index.records(record.question);
  for (const RecordPtr& item : records ? records->records : std::vector<RecordPtr>{}) {
    if (item->trial == record.trial && item->evidence == record.evidence && item->job_id == record.job_id) {
      return item;
    }
  }
  return std::make_shared<const RecordRow>(record);
}

/// What the agent leaves to the queue.
void stamp(const OpenJob& job, WorkBatch& batch) {
  const RecordQuestion& question = job.row.question;
  const auto stamp_row = [&](auto& row) {
    row.origin = Origin::Worker;
    row.series = job.row.series;
    row.job_id = job.row.id;
  };
  for (ArtifactUpload& upload : batch.artifacts) {
    upload.row.kernel = question.kernel;
  }
  for (TrialRow& trial : batch.trials) {
    stamp_row(trial);
    trial.kernel = question.kernel;
    trial.device_class = question.device_class;
    trial.policy = question.policy;
    trial.driver = job.driver;
  }
  std::ranges::for_each(batch.blocks, stamp_row);
  std::ranges::for_each(batch.verifications, stamp_row);
}

void put_artifacts(const std::vector<ArtifactUpload>& uploads, StoreWriter& writer) {
  for (const ArtifactUpload& upload : uploads) {
    if (!upload.zstd.empty()) {
      writer.put_blob({upload.row.cubin, upload.row.cubin_bytes, upload.zstd});
    } else if (!writer.has_blob(upload.row.cubin)) {
      throw Error(ErrorCode::InvalidArgument, "artifact " + upload.row.cubin.hex().substr(0, 16),
                  "has no bytes and was not uploaded before by PutArtifact");
    }
    writer.put_artifact(upload.row);
  }
}

/// Trials with their blocks and verifications. What ran out of memory is not stored, nor what belongs to it.
void put_trials(const WorkBatch& batch, StoreWriter& writer) {
  std::vector<Digest> passing;
  for (const TrialRow& trial : batch.trials) {
    if (!writer.put_trial(trial)) {
      passing.push_back(trial.key.digest);
    }
  }
  const auto stays = [&](const Digest& trial) { return std::ranges::find(passing, trial) == passing.end(); };
  for (const BlockRow& block : batch.blocks) {
    if (stays(block.trial)) {
      writer.put_block(block);
    }
  }
  for (const VerificationRow& verification : batch.verifications) {
    if (stays(verification.trial)) {
      writer.put_verification(verification);
    }
  }
}

/// Question, winner and origin of the record that the job has found; its row notes where another problem than
/// the asked one was measured. Throws FailedPrecondition where the winner's trial was never stored.
void complete_record(const OpenJob& job, JobRow& row, RecordRow& record, StoreReader& reader) {
  const auto trial = reader.trial_by_digest(record.trial);
  if (!trial) {
    throw Error(ErrorCode::FailedPrecondition, "job " + row.id, "the winner's trial was never stored");
  }
  Problem measured = std::move(record.question.problem);
  record.question = row.question;
  if (!measured.dims.empty() && measured != row.question.problem) {
    row.note = "measured " + to_string(measured) + " for " + to_string(row.question.problem) +
               (row.note.empty() ? "" : ": " + row.note);
    record.question.problem = std::move(measured);
  }
  record.configuration = trial->configuration;
  record.cubin = trial->cubin;
  record.architecture = trial->architecture;
  record.toolchain = trial->toolchain;
  record.driver = trial->driver;
  record.evidence = evidence_for(job.device.facts);
  record.provisional = record.provisional || record.timing.contended;
  record.job_id = row.id;
  row.record_trial = record.trial;
}

}  // namespace

bool Scheduler::progress(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                         const WorkProgress& progress) {
  OpenJob* job = state_->leased_job(agent, lease_id, fence);
  if (!job) {
    return false;
  }
  job->phase = progress.phase;
  job->best_us = progress.best_us;
  job->row.configurations = progress.configurations;
  job->row.configurations_done = progress.configurations_done;
  job->row.nvrtc_calls = progress.nvrtc_calls;
  const JobState now =
      progress.state == JobState::WaitingForIdleGpu ? JobState::WaitingForIdleGpu : JobState::Running;
  const bool changed = std::exchange(job->row.state, now) != now;
  state_->tell(*job);
  if (changed) {
    state_->dispatch();  // what is queued behind it waits for the same
  }
  return true;
}

bool Scheduler::store_batch(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                            WorkBatch batch) {
  OpenJob* job = state_->leased_job(agent, lease_id, fence);
  if (!job) {
    return false;
  }
  try {
    state_->store_rows(*job, batch);
  } catch (const Error& error) {
    // Nothing of the batch is stored and nothing is acknowledged: the work is done again when the store takes
    // writes.
    state_->agents.at(agent).link->end_lease(lease_id,
                                             std::string("the batch cannot be stored: ") + error.what());
    if (is_storage_fault(error)) {
      state_->requeue(*job, error.what());
    } else {
      state_->end(*job, JobState::Failed, error.what(), nullptr);
    }
    return false;
  }
  job->row.interruptions = 0;
  for (const ArtifactUpload& upload : batch.artifacts) {
    for (const auto& listener : state_->artifact_listeners) {
      listener(upload.row);
    }
  }
  return true;
}

void Scheduler::State::store_rows(const OpenJob& job, WorkBatch& batch) {
  stamp(job, batch);
  store.write([&](StoreWriter& writer) {
    put_artifacts(batch.artifacts, writer);
    put_trials(batch, writer);
  });
}

bool Scheduler::finish(std::uint64_t agent, const std::string& lease_id, std::uint64_t fence,
                       WorkResult result) {
  OpenJob* job = state_->leased_job(agent, lease_id, fence);
  if (!job) {
    return false;
  }
  job->row.outcomes = result.outcomes;
  const bool is_smaller = result.status == WorkResult::Status::Smaller;
  const bool gpu_in_use = job->row.state == JobState::WaitingForIdleGpu;
  if (result.status == WorkResult::Status::Interrupted && gpu_in_use && state_->only_when_idle(job->row)) {
    state_->wait_for_idle_gpu(*job);
  } else if (result.status == WorkResult::Status::Interrupted) {
    state_->requeue(*job, result.error.empty() ? "the agent handed it back" : result.error);
  } else if (result.needs_bytes > 0 && state_->move_to_more_room(*job, result)) {
    // It goes on there.
  } else if (result.status == WorkResult::Status::Failed || (is_smaller && !job->row.for_bucket)) {
    job->row.needs_bytes = result.needs_bytes;
    state_->end(*job, JobState::Failed, result.error, nullptr);
  } else {
    try {
      is_smaller ? state_->measure_smaller(*job, result) : state_->complete_tune(*job, result);
    } catch (const Error& error) {
      if (is_storage_fault(error)) {
        state_->requeue(*job, error.what());
      } else {
        state_->end(*job, JobState::Failed, error.what(), nullptr);
      }
    }
  }
  state_->dispatch();
  return true;
}

void Scheduler::State::complete_tune(OpenJob& job, WorkResult& result) {
  JobRow row = job.row;
  row.state = JobState::Done;
  row.finished_at = clock.wall_text();
  row.elapsed_ms += job.leased_ms(clock.steady_now());
  RecordRow& record = result.record;
  const bool has_record = row.kind == JobKind::Tune;
  store.write([&](StoreWriter& writer) {
    if (has_record) {
      complete_record(job, row, record, writer);
      writer.put_record(record);
      writer.drop_want(row.question);
    }
    writer.put_job(row);
    failpoint("store.commit");
  });
  RecordPtr published;
  if (has_record) {
    index.refresh(store, record.question);
    published = stored_record(record, *index.snapshot());
  }
  const DeviceClass device = job.device;
  drop_lease(job);
  job.row = row;
  end(job, JobState::Done, "", std::move(published));
  if (has_record) {
    measure_again_when_idle(record.question, device);
  }
}

bool Scheduler::State::move_to_more_room(OpenJob& job, const WorkResult& result) {
  const auto has_room = [&](const OfferedDevice& device) {
    return device.device.digest == job.row.question.device_class && may_measure(device) &&
           device.uuid != job.gpu_uuid && device.trial_memory_bytes >= result.needs_bytes;
  };
  const bool exists = std::ranges::any_of(
      agents, [&](const auto& agent) { return std::ranges::any_of(agent.second.profile.devices, has_room); });
  // Once: what is offered may have been taken meanwhile, and two GPUs could send it to and fro for ever.
  if (job.needs_bytes != 0 || !exists) {
    return false;
  }
  log_info("job " + job.row.id + " goes to another GPU: " + result.error);
  release(job);
  job.needs_bytes = result.needs_bytes;
  job.row.state = JobState::Queued;
  job.phase.clear();
  tell(job);
  return true;
}

void Scheduler::State::measure_smaller(OpenJob& job, const WorkResult& result) {
  const auto kernel = kernels.find(job.row.question.kernel);
  const Problem before = job.measured().problem;
  const Problem problem = kernel->spec->canonicalize(result.smaller_problem, "result.smaller_problem");
  const bool same_bucket = kernel->spec->representative(problem) == kernel->spec->representative(before);
  const auto shrinks = [](const NamedValue& now, const NamedValue& then) { return now.value <= then.value; };
  if (!same_bucket || problem == before || !std::ranges::equal(problem.dims, before.dims, shrinks)) {
    throw Error(ErrorCode::InvalidArgument, "result.smaller_problem",
                to_string(problem) + " is not a smaller problem of the bucket of " + to_string(before));
  }
  log_info("job " + job.row.id + " measures " + to_string(problem) + ": " + result.error);
  release(job);
  job.smaller = problem;
  job.needs_bytes = 0;
  job.row.note = result.error;
  job.row.state = JobState::Queued;
  job.row.series = 0;
  store.read([&](StoreReader& reader) {
    job.row.series = reader.last_series(job.measured()) + (job.row.retune ? 1 : 0);
  });
  job.phase.clear();
  tell(job);
}

void Scheduler::State::measure_again_when_idle(const RecordQuestion& question, const DeviceClass& device) {
  if (!has_provisional_record(question)) {
    return;
  }
  JobRow row;
  row.kind = JobKind::Tune;
  row.key = job_key(question);
  row.question = question;
  try {
    enqueue(std::move(row), device);
  } catch (const Error& error) {
    // The next start of the daemon tries again.
    log_warning("a provisional record is not measured again: " + std::string(error.what()));
  }
}

}  // namespace cubind
