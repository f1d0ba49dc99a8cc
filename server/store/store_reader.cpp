#include "server/store/store_reader.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <ranges>
#include <set>

#include "base/error.hpp"
#include "base/zstd.hpp"
#include "server/store/fact_rows.hpp"
#include "server/store/sql.hpp"

namespace cubind {

using store::Statement;

namespace sql = store::sql;

namespace {

bool selects(const RecordFilter& filter, const std::string& kernel, const Digest& device_class) {
  if (filter.device_class && *filter.device_class != device_class) {
    return false;
  }
  return filter.kernels.empty() || std::ranges::find(filter.kernels, kernel) != filter.kernels.end();
}

}  // namespace

template <typename Row>
std::vector<Row> StoreReader::read_rows(Statement& query) {
  return store::read_sound<Row>(query, damaged_, store::read_fact<Row>);
}

Generation StoreReader::generation() {
  Statement query = database_.query(sql::kMeta);
  if (!query.step()) {
    throw Error(ErrorCode::DataLoss, "store", "table meta is empty");
  }
  Generation generation;
  generation.store_id = query.blob();
  generation.number = query.unsigned_integer();
  return generation;
}

StoreCounts StoreReader::counts() {
  Statement query = database_.query(sql::kCounts);
  query.step();
  StoreCounts counts;
  counts.records = query.unsigned_integer();
  counts.artifacts = query.unsigned_integer();
  counts.trials = query.unsigned_integer();
  counts.wants = query.unsigned_integer();
  counts.file_bytes = query.unsigned_integer();
  counts.cubin_bytes = query.unsigned_integer();
  return counts;
}

std::optional<ArtifactRow> StoreReader::artifact(const Key& key) {
  Statement query = database_.query(sql::kArtifact);
  auto found = read_rows<ArtifactRow>(query.bind(key.digest));
  if (found.empty()) {
    return std::nullopt;
  }
  store::require_full_key(key, found.front().key.full, "artifact");
  return std::move(found.front());
}

std::optional<ArtifactRow> StoreReader::artifact_by_cubin(const Digest& cubin) {
  Statement query = database_.query(sql::kArtifactByCubin);
  if (!query.bind(cubin).step()) {
    return std::nullopt;
  }
  return store::read_row<ArtifactRow>(query, store::read_fact<ArtifactRow>);
}

std::vector<ToolchainIdentity> StoreReader::toolchains(const std::string& kernel) {
  Statement query = database_.query(sql::kToolchains);
  std::vector<ToolchainIdentity> toolchains;
  std::ranges::move(
      read_rows<ArtifactRow>(query.bind(kernel)) | std::views::transform(&ArtifactRow::toolchain),
      std::back_inserter(toolchains));
  return toolchains;
}

bool StoreReader::has_blob(const Digest& cubin) { return database_.query(sql::kHasBlob).bind(cubin).step(); }

std::optional<Blob> StoreReader::blob(const Digest& cubin) {
  Statement query = database_.query(sql::kBlob);
  if (!query.bind(cubin).step()) {
    return std::nullopt;
  }
  Blob blob;
  blob.cubin = cubin;
  blob.cubin_bytes = query.unsigned_integer();
  blob.zstd = query.blob();
  if (Digest::of(blob.zstd).view() != query.blob()) {
    store::damaged("cubin", cubin, "its stored bytes no longer have their SHA-256");
  }
  if (zstd_content_size(blob.zstd).value_or(blob.cubin_bytes) != blob.cubin_bytes) {
    store::damaged("cubin", cubin, "its stored size is not that of its bytes");
  }
  // A damaged index leads to the bytes of another cubin, which are sound.
  if (Digest::of(zstd_decompress(blob.zstd, blob.cubin_bytes)) != cubin) {
    store::damaged("cubin", cubin, "the bytes in its place are those of another one");
  }
  return blob;
}

std::map<Digest, DeviceClass> StoreReader::device_classes() {
  Statement query = database_.query(sql::kDeviceClasses);
  std::map<Digest, DeviceClass> classes;
  for (DeviceClass& device : read_rows<DeviceClass>(query)) {
    classes.emplace(device.digest, std::move(device));
  }
  return classes;
}

std::vector<RecordRow> StoreReader::records(const RecordFilter& filter) {
  Statement query = database_.query(filter.current_only ? sql::kCurrentRecords : sql::kEveryRecord);
  std::vector<RecordRow> records = store::read_sound<RecordRow>(query, damaged_, store::read_record);
  std::erase_if(records, [&](const RecordRow& record) {
    const bool elsewhere = filter.name_space && record.question.name_space != *filter.name_space;
    return elsewhere || !selects(filter, record.question.kernel, record.question.device_class);
  });
  return records;
}

std::vector<RecordRow> StoreReader::replaced_after(std::int64_t id, const std::string& kernel,
                                                   std::uint64_t most) {
  Statement query = database_.query(sql::kReplacedAfter);
  return store::read_sound<RecordRow>(query.bind(id, kernel, most), damaged_, store::read_record);
}

std::vector<RecordRow> StoreReader::records_of(const RecordQuestion& question) {
  const Key key = record_key(question);
  Statement query = database_.query(sql::kRecordsOfQuestion);
  return store::read_sound<RecordRow>(query.bind(key.digest), damaged_, store::read_record);
}

std::vector<RecordRow> StoreReader::records_at(std::uint64_t generation) {
  Statement query = database_.query(sql::kRecordsAt);
  return store::read_sound<RecordRow>(query.bind(generation), damaged_, store::read_record);
}

std::optional<TrialRow> StoreReader::trial(const Digest& key, const std::string& kernel) {
  Statement query = database_.query(sql::kTrial);
  if (!query.bind(key, kernel).step()) {
    return std::nullopt;
  }
  return store::read_row<TrialRow>(query, store::read_trial);
}

std::vector<TrialRow> StoreReader::trials(const TrialGroup& group) {
  const std::string problem = store::problem_text(group.problem);
  const std::string policy = to_string(group.policy);
  Statement query = database_.query(sql::kTrialsOfGroup);
  query.bind(group.kernel, problem, group.device_class, policy, group.driver_branch);
  return store::read_sound<TrialRow>(query, damaged_, store::read_trial);
}

std::vector<TrialRow> StoreReader::all_trials(const RecordFilter& filter) {
  Statement query = database_.query(sql::kAllTrials);
  std::vector<TrialRow> trials = store::read_sound<TrialRow>(query, damaged_, store::read_trial);
  std::erase_if(trials,
                [&](const TrialRow& trial) { return !selects(filter, trial.kernel, trial.device_class); });
  return trials;
}

std::vector<TrialRow> StoreReader::faults(const FaultFilter& filter) {
  Statement query = database_.query(sql::kFaults);
  query.bind(filter.device_class, filter.kernel);
  std::vector<TrialRow> faults = store::read_sound<TrialRow>(query, damaged_, store::read_trial);
  std::erase_if(faults, [&](const TrialRow& trial) {
    const bool elsewhere =
        !filter.problems.empty() && std::ranges::count(filter.problems, trial.problem) == 0;
    return elsewhere || !std::ranges::all_of(filter.values, [&](const NamedValue& wanted) {
             return trial.configuration.value(wanted.name) == wanted.value;
           });
  });
  return faults;
}

std::vector<BlockRow> StoreReader::blocks(const TrialRow& trial) {
  Statement query = database_.query(sql::kBlocks);
  const Digest measured = trial.measured_as.value_or(trial.key.digest);
  query.bind(measured, store::origin_name(trial.origin), trial.series);
  std::vector<BlockRow> blocks = read_rows<BlockRow>(query);
  std::ranges::for_each(
      blocks, [&](BlockRow& block) { block.mutable_block()->set_trial_key(bytes_of(trial.key.digest)); });
  return blocks;
}

std::vector<VerificationRow> StoreReader::verifications(const TrialRow& trial) {
  Statement query = database_.query(sql::kVerifications);
  const Digest measured = trial.measured_as.value_or(trial.key.digest);
  query.bind(measured, store::origin_name(trial.origin), trial.series);
  std::vector<VerificationRow> rows = read_rows<VerificationRow>(query);
  std::ranges::for_each(rows, [&](VerificationRow& row) {
    row.mutable_verification()->set_trial_key(bytes_of(trial.key.digest));
  });
  return rows;
}

std::vector<BlockRow> StoreReader::blocks_of(const TrialGroup& group, std::uint32_t series) {
  const std::string problem = store::problem_text(group.problem);
  const std::string policy = to_string(group.policy);
  Statement query = database_.query(sql::kBlocksOfGroup);
  query.bind(group.kernel, group.source, problem, group.device_class, policy, group.driver_branch, series);
  return read_rows<BlockRow>(query);
}

std::vector<VerificationRow> StoreReader::verifications_of(const TrialGroup& group, std::uint32_t series) {
  const std::string problem = store::problem_text(group.problem);
  const std::string policy = to_string(group.policy);
  Statement query = database_.query(sql::kVerificationsOfGroup);
  query.bind(group.kernel, group.source, problem, group.device_class, policy, group.driver_branch, series);
  return read_rows<VerificationRow>(query);
}

std::vector<Configuration> StoreReader::fastest_screened(const TrialGroup& group, std::uint32_t series,
                                                         std::size_t most) {
  const std::string problem = store::problem_text(group.problem);
  const std::string policy = to_string(group.policy);
  Statement query = database_.query(sql::kScreenedOfGroup);
  query.bind(group.kernel, problem, group.device_class, policy, group.driver_branch, series);
  std::map<Digest, std::vector<double>> samples;
  for (const BlockRow& row : read_rows<BlockRow>(query)) {
    std::ranges::copy(row.block().samples_us(), std::back_inserter(samples[trial_of(row)]));
  }
  std::vector<std::pair<double, Digest>> means;
  for (const auto& [trial, of_trial] : samples) {
    if (!of_trial.empty()) {
      const double sum = std::accumulate(of_trial.begin(), of_trial.end(), 0.0);
      means.emplace_back(sum / static_cast<double>(of_trial.size()), trial);
    }
  }
  std::ranges::sort(means);
  std::vector<Configuration> fastest;
  for (const auto& [mean, trial] : std::span(means).first(std::min(means.size(), most))) {
    Statement of_trial = database_.query(sql::kTrial);
    of_trial.bind(trial, group.kernel);
    for (TrialRow& row : store::read_sound<TrialRow>(of_trial, damaged_, store::read_trial)) {
      fastest.push_back(std::move(row.configuration));
    }
  }
  return fastest;
}

// Groups have most artifacts in common, and a row costs far more than its key.
std::set<Digest> StoreReader::artifact_keys_of(std::span<const TrialGroup> groups) {
  std::set<Digest> keys;
  for (const TrialGroup& group : groups) {
    const std::string problem = store::problem_text(group.problem);
    const std::string policy = to_string(group.policy);
    Statement query = database_.query(sql::kArtifactKeysOfGroup);
    query.bind(group.kernel, group.source, problem, group.device_class, policy, group.driver_branch);
    while (query.step()) {
      keys.insert(query.digest());
    }
  }
  return keys;
}

std::vector<ArtifactRow> StoreReader::artifacts_of(std::span<const TrialGroup> groups) {
  std::vector<ArtifactRow> artifacts;
  for (const Digest& key : artifact_keys_of(groups)) {
    Statement query = database_.query(sql::kArtifact);
    std::ranges::move(read_rows<ArtifactRow>(query.bind(key)), std::back_inserter(artifacts));
  }
  return artifacts;
}

std::vector<JobRow> StoreReader::out_of_memory_jobs() {
  Statement query = database_.query(sql::kOutOfMemoryJobs);
  return read_rows<JobRow>(query);
}

bool StoreReader::is_shared() const { return database_.dialect() == store::Dialect::Postgresql; }

std::vector<SharedJob> StoreReader::jobs_since(std::uint64_t change, bool all_open) {
  if (!is_shared()) {
    return {};
  }
  Statement query = database_.query(sql::kJobsSince);
  query.bind(change, all_open);
  return store::read_sound<JobRow>(query, damaged_, store::read_shared_job);
}

std::uint64_t StoreReader::last_job_change() {
  if (!is_shared()) {
    return 0;
  }
  Statement query = database_.query(sql::kLastJobChange);
  query.step();
  return query.unsigned_integer();
}

std::optional<SharedJob> StoreReader::open_job(const Digest& key) {
  if (!is_shared()) {
    return std::nullopt;
  }
  Statement query = database_.query(sql::kOpenJobOfKey);
  return query.bind(key).step() ? store::sound_row<JobRow>(query, damaged_, store::read_shared_job)
                                : std::nullopt;
}

std::optional<SharedJob> StoreReader::job_done_since(const Digest& key, std::uint64_t change) {
  if (!is_shared()) {
    return std::nullopt;
  }
  Statement query = database_.query(sql::kJobDoneSince);
  return query.bind(key, change).step() ? store::sound_row<JobRow>(query, damaged_, store::read_shared_job)
                                        : std::nullopt;
}

std::vector<RecordRow> StoreReader::records_since(std::uint64_t change) {
  if (!is_shared()) {
    return {};
  }
  Statement query = database_.query(sql::kRecordsSince);
  return store::read_sound<RecordRow>(query.bind(change), damaged_, store::read_record);
}

std::uint64_t StoreReader::last_record_change() {
  if (!is_shared()) {
    return 0;
  }
  Statement query = database_.query(sql::kLastRecordChange);
  query.step();
  return query.unsigned_integer();
}

std::optional<JobRow> StoreReader::job(const std::string& id) {
  Statement query = database_.query(sql::kJob);
  return query.bind(id).step() ? store::sound_row<JobRow>(query, damaged_, store::read_fact<JobRow>)
                               : std::nullopt;
}

std::vector<JobRow> StoreReader::open_jobs() {
  Statement query = database_.query(sql::kOpenJobs);
  return read_rows<JobRow>(query);
}

std::vector<JobRow> StoreReader::ended_jobs() {
  Statement query = database_.query(sql::kEndedJobs);
  return read_rows<JobRow>(query);
}

JobPage StoreReader::jobs_after(const JobAge& age, std::size_t limit) {
  JobPage page;
  Statement ages = database_.query(sql::kJobAgesAfter);
  ages.bind(age.created_at, age.id, static_cast<std::uint64_t>(limit));
  while (ages.step()) {
    std::string id = ages.text();
    page.last = JobAge{ages.text(), std::move(id)};
  }
  Statement query = database_.query(sql::kJobsAfter);
  query.bind(age.created_at, age.id, static_cast<std::uint64_t>(limit));
  page.jobs = read_rows<JobRow>(query);
  return page;
}

std::uint32_t StoreReader::last_series(const RecordQuestion& question, const Digest& source) {
  const std::string problem = store::problem_text(question.problem);
  const std::string policy = to_string(question.policy);
  Statement query = database_.query(sql::kLastSeries);
  query.bind(question.kernel, source, problem, question.device_class, policy).step();
  const std::uint32_t of_jobs = query.word();
  return std::max(of_jobs, query.word());
}

std::optional<std::uint64_t> StoreReader::pinned_generation(const std::string& job) {
  Statement query = database_.query(sql::kPin);
  if (!query.bind(job).step()) {
    return std::nullopt;
  }
  // The generation does not exist: the job is pinned again.
  const std::int64_t pinned = query.integer();
  const bool exists = pinned >= 0 && static_cast<std::uint64_t>(pinned) <= generation().number;
  return exists ? std::optional(static_cast<std::uint64_t>(pinned)) : std::nullopt;
}

std::vector<PinRow> StoreReader::pins(std::uint64_t most) {
  std::vector<PinRow> pins;
  Statement query = database_.query(sql::kPins);
  query.bind(most);
  while (query.step()) {
    PinRow& pin = pins.emplace_back();
    pin.job = query.text();
    pin.generation = query.unsigned_integer();
    pin.created_at = query.text();
  }
  return pins;
}

Savings StoreReader::savings() {
  Savings savings;
  Statement query = database_.query(sql::kSavings);
  if (query.step()) {
    savings.since = query.text();
    savings.answers = query.unsigned_integer();
    savings.timed = query.unsigned_integer();
    savings.compile_ms = query.unsigned_integer();
    savings.tuning_ms = query.unsigned_integer();
  }
  return savings;
}

std::vector<WantRow> StoreReader::wants() {
  Statement query = database_.query(sql::kWants);
  return store::read_sound<WantRow>(query, damaged_, store::read_want);
}

}  // namespace cubind
