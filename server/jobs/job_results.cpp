#include "server/jobs/job_results.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/failpoint.hpp"
#include "server/jobs/result_check.hpp"
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

/// Trials with their blocks and verifications. Trials that ran out of memory are not stored, nor are their
/// blocks and verifications. True: a block was not stored before.
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

}  // namespace

bool store_job_batch(const OpenJob& job, const AgentProfile& agent, WorkBatch& batch, Store& store) {
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

RecordPtr stored_record(const RecordRow& record, const IndexSnapshot& index) {
  const ClassRecords* records = index.records(record.question);
  for (const RecordPtr& item : records ? records->records : std::vector<RecordPtr>{}) {
    if (item->trial == record.trial && item->evidence == record.evidence && item->job_id == record.job_id) {
      return item;
    }
  }
  return std::make_shared<const RecordRow>(record);
}

}  // namespace cubind
