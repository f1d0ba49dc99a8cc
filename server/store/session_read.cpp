#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/store/columns.hpp"
#include "server/store/row_readers.hpp"
#include "server/store/session.hpp"
#include "server/store/sql.hpp"

namespace cubind::store {
namespace {

bool selects(const RecordFilter& filter, const std::string& kernel, const Digest& device_class) {
  if (filter.device_class && *filter.device_class != device_class) {
    return false;
  }
  return filter.kernels.empty() || std::ranges::find(filter.kernels, kernel) != filter.kernels.end();
}

DeviceClass read_device_class(Query& row) {
  const Key key = read_key(row, "device class");
  DeviceClass device;
  device.digest = key.digest;
  device.full = key.full;
  device.label = row.text();
  device.facts = read_facts(row.text());
  return device;
}

WantRow read_want(Query& row) {
  WantRow want;
  want.question = read_question(row);
  want.count = row.unsigned_integer();
  want.first_at = row.text();
  want.last_at = row.text();
  return want;
}

}  // namespace

void require_full_key(const Key& key, const std::string& stored, std::string_view what) {
  if (key.full != stored) {
    damaged(what, key.digest,
            "the stored full key is another one (a collision or a damaged row): it is not served");
  }
}

Generation Session::generation() {
  Query query = database_.query(sql::kMeta);
  if (!query.step()) {
    throw Error(ErrorCode::DataLoss, "store", "table meta is empty");
  }
  Generation generation;
  generation.store_id = query.blob();
  generation.number = query.unsigned_integer();
  return generation;
}

StoreCounts Session::counts() {
  Query query = database_.query(sql::kCounts);
  query.step();
  StoreCounts counts;
  counts.records = query.unsigned_integer();
  counts.artifacts = query.unsigned_integer();
  counts.trials = query.unsigned_integer();
  counts.blocks = query.unsigned_integer();
  counts.wants = query.unsigned_integer();
  counts.file_bytes = query.unsigned_integer();
  return counts;
}

std::optional<ArtifactRow> Session::artifact(const Key& key) {
  Query query = database_.query(sql::kArtifact);
  if (!query.bind(key.digest).step()) {
    return std::nullopt;
  }
  ArtifactRow artifact = read_artifact(query);
  require_full_key(key, artifact.key.full, "artifact");
  return artifact;
}

std::optional<ArtifactRow> Session::artifact_by_cubin(const Digest& cubin) {
  Query query = database_.query(sql::kArtifactByCubin);
  return read_one(query.bind(cubin), read_artifact);
}

std::vector<ToolchainIdentity> Session::toolchains(const std::string& kernel) {
  Query query = database_.query(sql::kToolchains);
  return read_all(query.bind(kernel), read_toolchain);
}

bool Session::has_blob(const Digest& cubin) { return database_.query(sql::kHasBlob).bind(cubin).step(); }

std::optional<Blob> Session::blob(const Digest& cubin) {
  Query query = database_.query(sql::kBlob);
  if (!query.bind(cubin).step()) {
    return std::nullopt;
  }
  Blob blob;
  blob.cubin = cubin;
  blob.cubin_bytes = query.unsigned_integer();
  blob.zstd = query.blob();
  if (Digest::of(blob.zstd) != query.digest()) {
    damaged("cubin", cubin, "its stored bytes no longer have their SHA-256");
  }
  return blob;
}

std::vector<DeviceClass> Session::device_classes() {
  Query query = database_.query(sql::kDeviceClasses);
  return read_all(query, read_device_class);
}

std::vector<RecordRow> Session::records(const RecordFilter& filter) {
  Query query = database_.query(filter.current_only ? sql::kCurrentRecords : sql::kEveryRecord);
  std::vector<RecordRow> records = read_all(query, read_record);
  std::erase_if(records, [&](const RecordRow& record) {
    const bool elsewhere = filter.name_space && record.question.name_space != *filter.name_space;
    return elsewhere || !selects(filter, record.question.kernel, record.question.device_class);
  });
  return records;
}

std::vector<RecordRow> Session::records_of(const RecordQuestion& question) {
  const Key key = record_key(question);
  Query query = database_.query(sql::kRecordsOfQuestion);
  return read_all(query.bind(key.digest), read_record);
}

std::vector<RecordRow> Session::records_at(std::uint64_t generation) {
  Query query = database_.query(sql::kRecordsAt);
  query.bind(generation);
  std::vector<RecordRow> records;
  while (query.step()) {
    records.push_back(read_record(query));
  }
  return records;
}

std::vector<RecordRow> Session::rivals(const RecordRow& record, const Digest& key) {
  const std::string branch = driver_branch(record.driver.version);
  const std::string evidence(to_string(record.evidence));
  Query query = database_.query(sql::kCurrentOfQuestion);
  return read_all(query.bind(key, branch, toolchain_major(record.toolchain), evidence), read_record);
}

std::optional<TrialRow> Session::trial(const Key& key) {
  Query query = database_.query(sql::kTrial);
  if (!query.bind(key.digest).step()) {
    return std::nullopt;
  }
  TrialRow trial = read_trial(query);
  require_full_key(key, trial.key.full, "trial");
  return trial;
}

std::optional<TrialRow> Session::trial_by_digest(const Digest& key) {
  Query query = database_.query(sql::kTrial);
  return read_one(query.bind(key), read_trial);
}

std::vector<TrialRow> Session::trials(const TrialGroup& group) {
  const std::string problem = write_problem(group.problem);
  const std::string policy = to_string(group.policy);
  Query query = database_.query(sql::kTrialsOfGroup);
  query.bind(group.kernel, problem, group.device_class, policy, group.driver_branch);
  std::vector<TrialRow> trials;
  while (query.step()) {
    try {
      trials.push_back(read_trial(query));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::DataLoss) {
        throw;
      }
      log_warning(std::string("a trial is passed over: ") + error.what());
    }
  }
  return trials;
}

std::vector<TrialRow> Session::all_trials(const RecordFilter& filter) {
  Query query = database_.query(sql::kAllTrials);
  std::vector<TrialRow> trials = read_all(query, read_trial);
  std::erase_if(trials,
                [&](const TrialRow& trial) { return !selects(filter, trial.kernel, trial.device_class); });
  return trials;
}

std::vector<BlockRow> Session::blocks(const TrialRow& trial) {
  Query query = database_.query(sql::kBlocks);
  query.bind(trial.series, trial.key.digest, origin_name(trial.origin));
  return read_all(query, [&](Query& row) {
    BlockRow block;
    block.trial = trial.key.digest;
    block.origin = trial.origin;
    block.series = trial.series;
    block.stage = static_cast<Stage>(row.integer());
    block.index = row.word();
    block.samples_us = read_doubles(row.blob());
    block.conditions.sm_mhz = row.word();
    block.conditions.memory_mhz = row.word();
    block.conditions.temperature_c = row.word();
    block.conditions.power_mw = row.word();
    block.conditions.throttle_reasons = row.unsigned_integer();
    block.conditions.throttled = row.flag();
    block.conditions.contended = row.flag();
    block.timer = row.text();
    block.tick_us = row.real();
    block.judged_against_us = row.real();
    block.job_id = row.text();
    return block;
  });
}

std::vector<VerificationRow> Session::verifications(const TrialRow& trial) {
  Query query = database_.query(sql::kVerifications);
  query.bind(trial.series, trial.key.digest, origin_name(trial.origin));
  return read_all(query, [&](Query& columns) {
    VerificationRow row;
    row.trial = trial.key.digest;
    row.origin = trial.origin;
    row.series = trial.series;
    row.verification_digest = columns.digest();
    row.problem = read_problem(columns.text());
    row.after_timing = columns.flag();
    row.outcome = read_outcome(columns.text());
    row.worst_excess = columns.real();
    row.worst_output = columns.text();
    row.worst_index = columns.unsigned_integer();
    row.mismatches = columns.unsigned_integer();
    row.same_bits = columns.flag();
    row.detail = columns.text();
    row.reference = columns.text();
    row.job_id = columns.text();
    return row;
  });
}

std::vector<ArtifactRow> Session::artifacts_of(const TrialGroup& group) {
  const std::string problem = write_problem(group.problem);
  const std::string policy = to_string(group.policy);
  Query query = database_.query(sql::kArtifactsOfGroup);
  return read_all(query.bind(group.kernel, problem, group.device_class, policy, group.driver_branch),
                  read_artifact);
}

std::vector<JobRow> Session::out_of_memory_jobs() {
  Query query = database_.query(sql::kOutOfMemoryJobs);
  std::vector<JobRow> rows;
  while (query.step()) {
    try {
      rows.push_back(read_job(query));
    } catch (const Error& error) {
      log_warning(std::string("a job that had no memory is forgotten: ") + error.what());
    }
  }
  return rows;
}

std::vector<JobRow> Session::jobs(bool include_ended) {
  Query query = database_.query(include_ended ? sql::kAllJobs : sql::kOpenJobs);
  return read_all(query, read_job);
}

std::uint32_t Session::last_series(const RecordQuestion& question) {
  const std::string problem = write_problem(question.problem);
  const std::string policy = to_string(question.policy);
  Query query = database_.query(sql::kLastSeries);
  query.bind(question.kernel, problem, question.device_class, policy).step();
  return query.word();
}

std::optional<std::uint64_t> Session::pinned_generation(const std::string& job) {
  Query query = database_.query(sql::kPin);
  if (!query.bind(job).step()) {
    return std::nullopt;
  }
  return query.unsigned_integer();
}

std::vector<WantRow> Session::wants() {
  Query query = database_.query(sql::kWants);
  return read_all(query, read_want);
}

}  // namespace cubind::store
