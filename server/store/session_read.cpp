#include <algorithm>

#include "base/error.hpp"
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
  if (!query.bind(cubin).step()) {
    return std::nullopt;
  }
  return read_artifact(query);
}

std::vector<ArtifactRow> Session::artifacts(const std::string& kernel) {
  Query query = database_.query(sql::kArtifactsOfKernel);
  return read_artifacts(query.bind(kernel));
}

std::vector<ToolchainIdentity> Session::toolchains(const std::string& kernel) {
  Query query = database_.query(sql::kToolchains);
  query.bind(kernel);
  std::vector<ToolchainIdentity> toolchains;
  while (query.step()) {
    toolchains.push_back(read_toolchain(query));
  }
  return toolchains;
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
  std::vector<DeviceClass> classes;
  while (query.step()) {
    const Key key = read_key(query, "device class");
    DeviceClass device;
    device.digest = key.digest;
    device.full = key.full;
    device.label = query.text();
    device.facts = read_facts(query.text());
    classes.push_back(std::move(device));
  }
  return classes;
}

std::vector<RecordRow> Session::records(const RecordFilter& filter) {
  Query query = database_.query(filter.current_only ? sql::kCurrentRecords : sql::kEveryRecord);
  std::vector<RecordRow> records;
  while (query.step()) {
    RecordRow record = read_record(query);
    if (filter.name_space && record.question.name_space != *filter.name_space) {
      continue;
    }
    if (selects(filter, record.question.kernel, record.question.device_class)) {
      records.push_back(std::move(record));
    }
  }
  return records;
}

std::vector<RecordRow> Session::records_of(const RecordQuestion& question) {
  const Key key = record_key(question);
  Query query = database_.query(sql::kRecordsOfQuestion);
  query.bind(key.digest);
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
  query.bind(key, branch, toolchain_major(record.toolchain), evidence);
  std::vector<RecordRow> rivals;
  while (query.step()) {
    rivals.push_back(read_record(query));
  }
  return rivals;
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
  if (!query.bind(key).step()) {
    return std::nullopt;
  }
  return read_trial(query);
}

std::vector<TrialRow> Session::trials(const TrialGroup& group) {
  const std::string problem = write_problem(group.problem);
  const std::string policy = to_string(group.policy);
  Query query = database_.query(sql::kTrialsOfGroup);
  return read_trials(query.bind(group.kernel, problem, group.device_class, policy, group.driver_branch));
}

std::vector<TrialRow> Session::all_trials(const RecordFilter& filter) {
  Query query = database_.query(sql::kAllTrials);
  std::vector<TrialRow> trials = read_trials(query);
  std::erase_if(trials,
                [&](const TrialRow& trial) { return !selects(filter, trial.kernel, trial.device_class); });
  return trials;
}

std::vector<BlockRow> Session::blocks(const TrialRow& trial) {
  Query query = database_.query(sql::kBlocks);
  query.bind(trial.series, trial.key.digest, origin_name(trial.origin));
  std::vector<BlockRow> blocks;
  while (query.step()) {
    BlockRow& block = blocks.emplace_back();
    block.trial = trial.key.digest;
    block.origin = trial.origin;
    block.series = trial.series;
    block.stage = static_cast<Stage>(query.integer());
    block.index = query.word();
    block.samples_us = read_doubles(query.blob());
    block.conditions.sm_mhz = query.word();
    block.conditions.memory_mhz = query.word();
    block.conditions.temperature_c = query.word();
    block.conditions.power_mw = query.word();
    block.conditions.throttle_reasons = query.unsigned_integer();
    block.conditions.throttled = query.flag();
    block.conditions.contended = query.flag();
    block.timer = query.text();
    block.tick_us = query.real();
    block.judged_against_us = query.real();
    block.job_id = query.text();
  }
  return blocks;
}

std::vector<VerificationRow> Session::verifications(const TrialRow& trial) {
  Query query = database_.query(sql::kVerifications);
  query.bind(trial.series, trial.key.digest, origin_name(trial.origin));
  std::vector<VerificationRow> rows;
  while (query.step()) {
    VerificationRow& row = rows.emplace_back();
    row.trial = trial.key.digest;
    row.origin = trial.origin;
    row.series = trial.series;
    row.verification_digest = query.digest();
    row.problem = read_problem(query.text());
    row.after_timing = query.flag();
    row.outcome = read_outcome(query.text());
    row.worst_excess = query.real();
    row.worst_output = query.text();
    row.worst_index = query.unsigned_integer();
    row.mismatches = query.unsigned_integer();
    row.same_bits = query.flag();
    row.detail = query.text();
    row.reference = query.text();
    row.job_id = query.text();
  }
  return rows;
}

std::vector<ArtifactRow> Session::artifacts_of(const TrialGroup& group) {
  const std::string problem = write_problem(group.problem);
  const std::string policy = to_string(group.policy);
  Query query = database_.query(sql::kArtifactsOfGroup);
  return read_artifacts(query.bind(group.kernel, problem, group.device_class, policy, group.driver_branch));
}

std::vector<JobRow> Session::jobs(bool include_ended) {
  Query query = database_.query(include_ended ? sql::kAllJobs : sql::kOpenJobs);
  std::vector<JobRow> jobs;
  while (query.step()) {
    jobs.push_back(read_job(query));
  }
  return jobs;
}

std::uint32_t Session::last_series(const Digest& job_key) {
  Query query = database_.query(sql::kLastSeries);
  query.bind(job_key).step();
  return query.word();
}

std::vector<WantRow> Session::wants() {
  Query query = database_.query(sql::kWants);
  std::vector<WantRow> wants;
  while (query.step()) {
    WantRow& want = wants.emplace_back();
    want.question = read_question(query);
    want.count = query.unsigned_integer();
    want.first_at = query.text();
    want.last_at = query.text();
  }
  return wants;
}

}  // namespace cubind::store
