#include "server/jobs/outcomes.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/failpoint.hpp"
#include "base/log.hpp"
#include "server/jobs/result_check.hpp"
#include "server/kernel_library.hpp"
#include "server/lookup/lookup.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

/// A result of a GPU that plays a table is not a measurement, whatever the agent calls it.
Evidence evidence_for(const DeviceFacts& facts) {
  return facts.replay_table().empty() ? Evidence::Measured : Evidence::Replayed;
}

/// The decisions that the agent leaves to the queue.
void stamp(const OpenJob& job, WorkBatch& batch) {
  const RecordQuestion& question = job.row.question;
  const auto stamp_row = [&](auto& row) {
    row.set_series(job.row.fact.series());
    row.set_job(job.row.id);
  };
  for (ArtifactUpload& upload : batch.artifacts) {
    upload.row.kernel = question.kernel;
  }
  for (TrialRow& trial : batch.trials) {
    trial.series = job.row.fact.series();
    trial.job_id = job.row.id;
    trial.kernel = question.kernel;
    trial.source = source_digest(*job.lease->spec);
    trial.device_class = question.device_class;
    trial.policy = question.policy;
    trial.driver = job.lease->driver;
  }
  std::ranges::for_each(batch.blocks, stamp_row);
  std::ranges::for_each(batch.verifications, stamp_row);
}

/// A trial that fails again or an artifact that comes again is no progress of the job.
bool holds_something_new(const WorkBatch& batch, StoreReader& reader) {
  return std::ranges::any_of(
             batch.trials,
             [&](const TrialRow& trial) { return !reader.trial(trial.key.digest, trial.kernel); }) ||
         std::ranges::any_of(batch.artifacts,
                             [&](const ArtifactUpload& upload) { return !reader.artifact(upload.row.key); });
}

void put_artifacts(const std::vector<ArtifactUpload>& uploads, StoreWriter& writer) {
  for (std::size_t i = 0; i < uploads.size(); ++i) {
    const ArtifactUpload& upload = uploads[i];
    if (!upload.zstd.empty()) {
      writer.put_blob({upload.row.cubin, upload.row.cubin_bytes, upload.zstd});
    } else if (!writer.has_blob(upload.row.cubin)) {
      throw Error(ErrorCode::InvalidArgument, "artifact " + upload.row.cubin.hex().substr(0, 16),
                  "has no bytes and was not uploaded before by PutArtifact");
    }
    check_cubin(upload.row, static_cast<int>(i), writer);
    writer.put_artifact(upload.row);
  }
}

/// Stores trials with their blocks and verifications, but nothing of trials that ran out of memory. Returns
/// true if a block was not stored before.
bool put_trials(const WorkBatch& batch, StoreWriter& writer) {
  std::vector<Digest> passing;
  for (const TrialRow& trial : batch.trials) {
    if (!writer.put_trial(trial)) {
      passing.push_back(trial.key.digest);
    }
  }
  const auto stays = [&](const Digest& trial) { return std::ranges::find(passing, trial) == passing.end(); };
  bool is_new = false;
  for (const BlockRow& block : batch.blocks) {
    is_new = (stays(trial_of(block)) && writer.put_block(block)) || is_new;
  }
  for (const VerificationRow& verification : batch.verifications) {
    if (stays(trial_of(verification))) {
      writer.put_verification(verification);
    }
  }
  return is_new;
}

/// Some runs of a kernel whose results differ from run to run pass. A trial that was found wrong once stays
/// wrong in its series; all else of the batch stands.
void keep_failures(const OpenJob& job, const WorkBatch& batch, StoreWriter& writer) {
  for (const VerificationRow& passed : batch.verifications) {
    const auto trial = passed.verification().outcome() == v1::CORRECT
                           ? writer.trial(trial_of(passed), job.row.question.kernel)
                           : std::nullopt;
    if (!trial || trial->outcome != Outcome::Correct || !has_failed(job, *trial, writer)) {
      continue;
    }
    TrialRow wrong = *trial;
    wrong.outcome = Outcome::WrongResult;
    wrong.header().set_detail("results differ from run to run: another run of this verification failed");
    writer.put_trial(wrong);
  }
}

/// Completes the agent's rows and stores them in one transaction. Throws InvalidArgument for rows that do not
/// fit the job (result_check.hpp) and for an artifact without bytes that was not uploaded before, and the
/// store's errors. Returns true if anything was not stored before.
bool store_rows(const OpenJob& job, const AgentProfile& agent, WorkBatch& batch, Store& store) {
  check_batch(job, agent, batch);
  stamp(job, batch);
  bool is_new = false;
  store.write([&](StoreWriter& writer) {
    writer.require_fence(job.row.id, job.row.fact.fence());
    check_against_store(job, batch, writer);
    is_new = holds_something_new(batch, writer);
    put_artifacts(batch.artifacts, writer);
    is_new = put_trials(batch, writer) || is_new;
    check_measured_as(job, batch, writer);
    keep_failures(job, batch, writer);
    failpoint("store.batch");
  });
  return is_new;
}

/// Fills question, winner and origin of the job's record. If another problem than the asked one was measured,
/// the job's row notes it. check_result() has passed.
void complete_record(const OpenJob& job, JobRow& row, RecordRow& record, StoreReader& reader) {
  const auto trial = reader.trial(record.trial, row.question.kernel).value();
  Problem measured = std::move(record.question.problem);
  record.question = row.question;
  if (!measured.dims.empty() && measured != row.question.problem) {
    row.shown().set_note("measured " + to_string(measured) + " for " + to_string(row.question.problem) +
                         (row.shown().note().empty() ? "" : ": " + row.shown().note()));
    record.question.problem = std::move(measured);
  }
  record.configuration = trial.configuration;
  record.cubin = trial.cubin;
  record.architecture = trial.fact.architecture();
  record.toolchain = trial.toolchain;
  record.driver = trial.driver;
  record.evidence = evidence_for(job.device.facts);
  record.provisional = record.provisional || record.timing.contended();
  record.job_id = row.id;
  row.record_trial = record.trial;
}

/// The row that the job has stored; other rows may have the same trial (an imported one, one of an earlier
/// job). If a better record exists, none was stored.
RecordPtr stored_record(const RecordRow& record, const IndexSnapshot& index) {
  const ClassRecords* records = index.records(record.question);
  for (const RecordPtr& item : records ? records->records : std::vector<RecordPtr>{}) {
    if (item->trial == record.trial && item->evidence == record.evidence && item->job_id == record.job_id) {
      return item;
    }
  }
  return std::make_shared<const RecordRow>(record);
}

}  // namespace

bool Outcomes::store_batch(OpenJob& job, const JoinedAgent& agent, WorkBatch& batch) {
  try {
    if (store_rows(job, agent.profile, batch, context_.store)) {
      job.lease->last_result = context_.clock.steady_now();
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::InvalidArgument) {
      refuse(job, agent, error);
    } else if (error.code() == ErrorCode::Aborted) {
      owners_.lose(job, error.what());
    } else {
      // Nothing of the batch is stored and nothing is acknowledged: the work is done again when the store
      // takes writes.
      leases_.withdraw(job, std::string("the batch cannot be stored: ") + error.what());
      queue_.give_up(job, error);
    }
    return false;
  }
  job.row.fact.set_interruptions(0);
  if (!batch.blocks.empty()) {
    conditions_[job.lease->gpu_uuid] = batch.blocks.back().block().conditions();
  }
  for (const ArtifactUpload& upload : batch.artifacts) {
    for (const auto& listener : listeners_) {
      listener(upload.row);
    }
  }
  return true;
}

v1::Conditions Outcomes::conditions_of(const std::string& gpu_uuid) const {
  const auto found = conditions_.find(gpu_uuid);
  return found == conditions_.end() ? v1::Conditions() : found->second;
}

void Outcomes::refuse(OpenJob& job, const JoinedAgent& agent, const Error& error) {
  log_warning("job " + job.row.id + ": what agent " + agent.profile.id +
              " reports is refused: " + error.what());
  if (++job.refusals >= context_.options.refusal_limit) {
    leases_.withdraw(job, error.what());
    queue_.fail(job, std::string("an agent's results were refused: ") + error.what());
    return;
  }
  const std::string reason = std::string("its results were refused: ") + error.what();
  if (dynamic_cast<const UnstableWinner*>(&error) == nullptr) {
    queue_.take_back(job, reason);
    return;
  }
  // No fault of the agent. Its next lease has the failed verification, and it goes on with the next finalist.
  leases_.withdraw(job, reason);
  queue_.interrupt(job, reason);
}

bool Outcomes::finish(OpenJob& job, const JoinedAgent& agent, WorkResult& result) {
  const v1::JobResult& told = result.told;
  const v1::Job before = job.row.shown();
  const HeldLease lease = *job.lease;
  *job.row.shown().mutable_outcomes() = told.outcomes();
  job.lease->note(told.stages(), "", context_.clock.steady_now());
  const bool is_smaller = told.status() == v1::JobResult::SMALLER;
  if (told.status() == v1::JobResult::INTERRUPTED) {
    queue_.hand_back(job, agent.is_leaving, told.error().empty() ? "the agent handed it back" : told.error());
  } else if (told.needs_bytes() > 0 && move_to_more_room(job, told)) {
    // It goes on there.
  } else if (told.status() == v1::JobResult::FAILED || (is_smaller && !job.row.fact.for_bucket())) {
    job.row.fact.set_needs_bytes(told.needs_bytes());
    queue_.fail(job, told.error());
  } else {
    try {
      is_smaller ? measure_smaller(job, result) : complete(job, result);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::InvalidArgument) {
        job.row.shown() = before;
        job.lease = lease;
        refuse(job, agent, error);
        return false;
      }
      if (error.code() == ErrorCode::Aborted) {
        owners_.lose(job, error.what());
        return false;
      }
      queue_.give_up(job, error);
    }
  }
  return true;
}

void Outcomes::complete(OpenJob& job, WorkResult& result) {
  JobRow row = job.row;
  job.add_lease(row.shown(), context_.clock.steady_now());
  row.state = v1::Job::DONE;
  row.shown().set_finished_at(context_.clock.wall_text());
  RecordRow& record = result.record;
  const bool is_tune = measures(row);
  const bool has_record = is_tune && !row.fact.from_scratch();
  context_.store.write([&](StoreWriter& writer) {
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
    published = publish(record);
  }
  const DeviceClass device = job.device;
  leases_.end(job);
  job.row = std::move(row);
  queue_.end(job, v1::Job::DONE, "", std::move(published));
  if (has_record) {
    submissions_.measure_again(record.question, device);
  }
}

RecordPtr Outcomes::publish(const RecordRow& record) {
  Index& index = context_.index;
  const RecordPtr before = latest_measurement(record.question, *index.snapshot());
  index.refresh(context_.store, record.question);
  const RecordPtr now = latest_measurement(record.question, *index.snapshot());
  winner_changes_ += before && now && before->configuration != now->configuration ? 1 : 0;
  return stored_record(record, *index.snapshot());
}

void Outcomes::keep_search(const OpenJob& job, RecordRow& record) const {
  const RecordPtr before = latest_measurement(record.question, *context_.index.snapshot());
  if (job.row.listed.empty() || record.search.complete() || !before || !owners_.knows(record.question)) {
    return;
  }
  const bool same_terms = before->search.space() == record.search.space() &&
                          driver_branch(before->driver.version) == driver_branch(record.driver.version) &&
                          before->toolchain.name == record.toolchain.name &&
                          before->question.policy == record.question.policy &&
                          has_same_limit(before->timing, job.device.facts).value_or(true);
  const auto carried =
      carry_over(*context_.kernels.find(record.question.kernel)->spec, *before, job.device.facts);
  if (same_terms && carried && !carried->other_revision) {
    record.search = before->search;
  }
}

bool Outcomes::move_to_more_room(OpenJob& job, const v1::JobResult& told) {
  // Once: the offered memory may have been taken meanwhile, and two GPUs could send the job to and fro
  // forever.
  if (job.needs_bytes != 0 || !placement_.more_room_exists(job, told.needs_bytes())) {
    return false;
  }
  log_info("job " + job.row.id + " goes to another GPU: " + told.error());
  job.needs_bytes = told.needs_bytes();
  queue_.put_back_here(job);
  return true;
}

void Outcomes::measure_smaller(OpenJob& job, const WorkResult& result) {
  const auto kernel = context_.kernels.find(job.row.question.kernel);
  const Problem before = job.measured().problem;
  const Problem problem = kernel->spec->canonicalize(result.smaller_problem, "result.smaller_problem");
  const bool same_bucket = kernel->spec->representative(problem) == kernel->spec->representative(before);
  const auto shrinks = [](const NamedValue& now, const NamedValue& then) { return now.value <= then.value; };
  if (!same_bucket || problem == before || !std::ranges::equal(problem.dims, before.dims, shrinks)) {
    throw Error(ErrorCode::InvalidArgument, "result.smaller_problem",
                to_string(problem) + " is not a smaller problem of the bucket of " + to_string(before));
  }
  JobRow smaller = job.row;
  smaller.question.problem = problem;
  context_.store.read(
      [&](StoreReader& reader) { job.row.fact.set_series(queue_.next_series(reader, smaller)); });
  log_info("job " + job.row.id + " measures " + to_string(problem) + ": " + result.told.error());
  job.smaller = problem;
  job.needs_bytes = 0;
  job.row.shown().set_note(result.told.error());
  queue_.put_back_here(job);
}

}  // namespace cubind
