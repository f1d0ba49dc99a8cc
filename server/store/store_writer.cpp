#include "server/store/store_writer.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/zstd.hpp"
#include "plan/facts/library_comparison.hpp"
#include "server/store/fact_rows.hpp"
#include "server/store/sql.hpp"

namespace cubind {

using store::Statement;

namespace sql = store::sql;

namespace {

void require_digest(const TrialRow& trial) {
  if (trial.origin == Origin::Worker && Digest::of(trial.key.full) != trial.key.digest) {
    throw Error(ErrorCode::InvalidArgument, "trial key", "the full key does not have the digest");
  }
}

/// Whether an import would say again what the current row says.
bool says_the_same(const RecordRow& a, const RecordRow& b) {
  return a.configuration == b.configuration && a.trial == b.trial && a.cubin == b.cubin &&
         a.timing.median_us() == b.timing.median_us() && a.timing.measured_at() == b.timing.measured_at() &&
         a.verification == b.verification && a.driver == b.driver && a.toolchain == b.toolchain;
}

}  // namespace

template <typename Row, typename... Others>
void StoreWriter::put_row(const std::string& statement, const Row& row, const Others&... others) {
  const store::StoredRow written = store::stored(row);
  Statement query = database_.query(statement);
  bind_row(query, written, others...).run();
}

std::uint64_t StoreWriter::next_generation() {
  if (!generation_raised_) {
    database_.query(sql::kRaiseGeneration).run();
  }
  generation_raised_ = true;
  return generation().number;
}

void StoreWriter::drop_damaged_blob(const Digest& cubin) {
  try {
    blob(cubin);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DataLoss) {
      throw;
    }
    drop_blob(cubin);
  }
}

void StoreWriter::drop_blob(const Digest& cubin) {
  database_.query(sql::kDeleteBlob).bind(cubin).run();
  database_.query(sql::kDeleteUse).bind(cubin).run();
}

void StoreWriter::note_used(std::span<const Digest> cubins) {
  for (const Digest& cubin : cubins) {
    database_.query(sql::kNoteUse).bind(now_, cubin).run();
  }
}

std::uint64_t StoreWriter::evict_cubins(std::uint64_t max_bytes) {
  constexpr int kMost = 256;
  std::uint64_t bytes = counts().cubin_bytes;
  std::vector<Digest> evicted;
  {
    Statement query = database_.query(sql::kUnneededCubins);
    query.bind(kMost);
    while (bytes > max_bytes && query.step()) {
      evicted.push_back(query.digest());
      bytes -= std::min(bytes, query.unsigned_integer());
    }
  }
  for (const Digest& cubin : evicted) {
    drop_blob(cubin);
  }
  return evicted.size();
}

void StoreWriter::put_blob(const Blob& blob) {
  drop_damaged_blob(blob.cubin);
  if (has_blob(blob.cubin)) {
    return;
  }
  // With a wrong digest here the store would serve another kernel's machine code forever.
  const std::string cubin = zstd_decompress(blob.zstd, blob.cubin_bytes);
  if (Digest::of(cubin) != blob.cubin) {
    throw Error(ErrorCode::InvalidArgument, "artifact " + blob.cubin.hex().substr(0, 16),
                "the uploaded bytes do not have this digest");
  }
  const Digest stored = Digest::of(blob.zstd);
  database_.query(sql::kInsertBlob)
      .bind(blob.cubin, std::uint64_t{cubin.size()}, Statement::bytes(blob.zstd), stored)
      .run();
  database_.query(sql::kInsertUse).bind(blob.cubin, std::uint64_t{blob.zstd.size()}, now_).run();
}

void StoreWriter::put_artifact(const ArtifactRow& artifact) {
  if (Digest::of(artifact.key.full) != artifact.key.digest) {
    throw Error(ErrorCode::InvalidArgument, "artifact key", "the full key does not have the digest");
  }
  if (this->artifact(artifact.key)) {
    return;
  }
  database_.query(sql::kDeleteArtifact).bind(artifact.key.digest).run();  // a damaged one
  put_row(sql::kInsertArtifact, artifact, now_);
}

void StoreWriter::drop_artifact(const Digest& key, const Digest& cubin) {
  database_.query(sql::kDropArtifact).bind(key, cubin).run();
}

void StoreWriter::put_device_class(const DeviceClass& device) {
  if (Digest::of(device.full) != device.digest) {
    throw Error(ErrorCode::InvalidArgument, "device class", "the full key does not have the digest");
  }
  put_row(is_damaged_class(device.digest) ? sql::kMendDeviceClass : sql::kInsertDeviceClass, device);
}

bool StoreWriter::is_damaged_class(const Digest& digest) {
  Statement query = database_.query(sql::kDeviceClass);
  return query.bind(digest).step() &&
         !store::sound_row<DeviceClass>(query, damaged_, store::read_fact<DeviceClass>);
}

void StoreWriter::require_trial(const Digest& key, Origin origin) {
  if (!database_.query(sql::kHasTrial).bind(key, store::origin_name(origin)).step()) {
    throw Error(ErrorCode::InvalidArgument, "trial " + key.hex().substr(0, 16),
                "its samples came before the trial itself was stored");
  }
}

bool StoreWriter::put_trial(const TrialRow& trial) {
  // The amount of free memory says nothing about the configuration.
  if (trial.outcome == Outcome::OutOfMemory) {
    return false;
  }
  Statement query = database_.query(sql::kKnownTrial);
  query.bind(trial.key.digest, store::origin_name(trial.origin), trial.kernel);
  const bool is_known = query.step();
  if (is_known && trial.origin == Origin::Import) {
    return false;
  }
  require_digest(trial);
  TrialRow row = trial;
  // A damaged row is written again.
  if (const auto known =
          is_known ? store::sound_row<TrialRow>(query, damaged_, store::read_fact<TrialRow>) : std::nullopt) {
    store::require_full_key(trial.key, known->key.full, "trial");
    row.series = std::max(trial.series, known->series);
    // Faults are counted over the life of the trial: its key holds the driver branch, so a new branch begins
    // at zero.
    if (is_fault(trial.outcome)) {
      row.header().set_fault_count(std::max(trial.header().fault_count(), known->header().fault_count()));
    }
  }
  put_row(sql::kPutTrial, row);
  return true;
}

void StoreWriter::forget_trial(const TrialRow& trial) {
  const auto origin = store::origin_name(trial.origin);
  database_.query(sql::kDeleteTrial).bind(trial.key.digest, origin, trial.kernel).run();
  for (const std::string* dropping : {&sql::kDeleteBlocks, &sql::kDeleteVerifications}) {
    database_.query(*dropping).bind(trial.key.digest, origin).run();
  }
  const std::string problem = store::problem_text(trial.problem);
  const std::string policy = to_string(trial.policy);
  Statement query = database_.query(sql::kCurrentOfGroup);
  query.bind(trial.kernel, problem, trial.device_class, policy);
  for (RecordRow& record : store::read_sound<RecordRow>(query, damaged_, store::read_record)) {
    record.search = {};
    set_fact(record);
  }
}

void StoreWriter::set_fact(const RecordRow& record) {
  const store::StoredRow row = store::stored(record);
  database_.query(sql::kSetFact).bind(Statement::bytes(row.fact), row.sha256, record.id).run();
}

bool StoreWriter::put_block(const BlockRow& block) {
  if (insert_block(block)) {
    return true;
  }
  const Digest key = trial_of(block);
  const SampleBlock& sent = block.block();
  TrialRow trial;
  trial.key.digest = key;
  trial.origin = static_cast<Origin>(block.imported());
  trial.series = block.series();
  const bool is_sound = std::ranges::any_of(blocks(trial), [&](const BlockRow& known) {
    return known.block().stage() == sent.stage() && known.block().index() == sent.index();
  });
  if (is_sound) {
    return false;
  }
  database_.query(sql::kDeleteBlock)
      .bind(key, store::origin_name(block), block.series(), static_cast<int>(sent.stage()), sent.index())
      .run();
  return insert_block(block);
}

bool StoreWriter::insert_block(const BlockRow& block) {
  require_trial(trial_of(block), static_cast<Origin>(block.imported()));
  put_row(sql::kInsertBlock, block);
  return database_.changes() == 1;
}

void StoreWriter::put_verification(const VerificationRow& row) {
  require_trial(trial_of(row), static_cast<Origin>(row.imported()));
  put_row(sql::kPutVerification, row);
}

void StoreWriter::end_record(std::int64_t id) {
  database_.query(sql::kEndRecord).bind(next_generation(), id).run();
}

std::vector<StoreWriter::Rival> StoreWriter::rivals(const RecordRow& record, const Digest& key) {
  const std::string branch = driver_branch(record.driver.version);
  const std::string evidence(to_string(record.evidence));
  Statement query = database_.query(sql::kCurrentOfQuestion);
  query.bind(key, branch, toolchain_major(record.toolchain), evidence);
  std::vector<Rival> rivals;
  while (query.step()) {
    auto rival = store::sound_row<RecordRow>(query, damaged_, store::read_record);
    rivals.push_back({std::stoll(query.row_name()), std::move(rival)});
  }
  return rivals;
}

bool StoreWriter::put_comparison(std::int64_t record, const LibraryComparison& comparison) {
  Statement query = database_.query(sql::kCurrentRecord);
  auto known = store::read_sound<RecordRow>(query.bind(record), damaged_, store::read_record);
  if (known.empty()) {
    return false;
  }
  cubind::put_comparison(known.front().over_library, comparison);
  set_fact(known.front());
  return true;
}

bool StoreWriter::put_record(const RecordRow& record) {
  const Key key = record_key(record.question);
  drop_want(record.question);
  RecordRow row = record;
  row.key = key.digest;
  std::vector<LibraryComparison> comparisons;
  for (const Rival& rival : rivals(record, key.digest)) {
    // A measurement taken next to a foreign process never replaces one that had the GPU to itself.
    if (rival.record && record.provisional && !rival.record->provisional) {
      return false;
    }
    if (rival.record && record.evidence != Evidence::Measured && says_the_same(record, *rival.record)) {
      for (const LibraryComparison& comparison : record.over_library) {
        put_comparison(rival.id, comparison);
      }
      return false;
    }
    if (rival.record && rival.record->cubin == record.cubin) {
      comparisons = rival.record->over_library;
    }
    end_record(rival.id);
  }
  for (const LibraryComparison& comparison : record.over_library) {
    cubind::put_comparison(comparisons, comparison);
  }
  row.over_library = std::move(comparisons);
  row.from_generation = next_generation();
  put_row(sql::kInsertRecord, row);
  return true;
}

bool StoreWriter::put_new_record(const RecordRow& record) {
  return records_of(record.question).empty() && put_record(record);
}

/// Only the latest job of a key says how much memory was short.
void StoreWriter::settle_out_of_memory(const Digest& key) {
  Statement query = database_.query(sql::kOutOfMemoryOfKey);
  for (JobRow& job : read_rows<JobRow>(query.bind(key))) {
    job.fact.set_needs_bytes(0);
    database_.query(sql::kDeleteJob).bind(job.id).run();
    put_row(sql::kInsertJob, job);
  }
}

// Two statements: an INSERT that replaced rows would drop another open job with the same key instead of
// refusing this one.
std::uint64_t StoreWriter::put_job(const JobRow& job, const std::string& owner) {
  database_.query(sql::kDeleteJob).bind(job.id).run();
  settle_out_of_memory(job.key);
  put_row(sql::kInsertJob, job);
  if (!is_shared()) {
    return 0;
  }
  Statement query = database_.query(sql::kSetOwner);
  const auto id = owner.empty() ? std::nullopt : std::optional(Statement::bytes(owner));
  query.bind(id, job.id).step();
  return query.unsigned_integer();
}

void StoreWriter::require_row(Statement& query, const std::string& id) {
  if (!query.step()) {
    throw Error(ErrorCode::Aborted, "job " + id, "another daemon has changed it meanwhile");
  }
}

void StoreWriter::claim_job(const std::string& id, std::uint64_t change, const std::string& daemon) {
  if (is_shared()) {
    Statement query = database_.query(sql::kClaimJob);
    require_row(query.bind(id, change, Statement::bytes(daemon)), id);
  }
}

void StoreWriter::require_unchanged(const std::string& id, std::uint64_t change) {
  if (is_shared()) {
    Statement query = database_.query(sql::kUnchangedJob);
    require_row(query.bind(id, change), id);
  }
}

void StoreWriter::require_fence(const std::string& id, std::uint64_t fence) {
  if (is_shared()) {
    Statement query = database_.query(sql::kFencedJob);
    require_row(query.bind(id, fence), id);
  }
}

void StoreWriter::forget_jobs(const std::string& ended_before) {
  database_.query(sql::kForgetJobs).bind(ended_before, kMaxEndedJobs).run();
  database_.query(sql::kForgetClasses).run();
}

void StoreWriter::fail_damaged_jobs() {
  std::vector<std::pair<std::string, std::string>> damaged;  // id and what is wrong
  Statement query = database_.query(sql::kOpenJobs);
  while (query.step()) {
    try {
      store::read_row<JobRow>(query, store::read_fact<JobRow>);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::DataLoss) {
        throw;
      }
      damaged_.leave_out(error);
      damaged.emplace_back(query.row_name(), error.what());
    }
  }
  for (const auto& [id, error] : damaged) {
    JobRow failed;  // nothing else of it is sure
    failed.id = valid_utf8(id);
    failed.key = Digest::of(id);
    failed.state = v1::Job::FAILED;
    failed.shown().set_error(error);
    failed.shown().set_created_at(now_);
    failed.shown().set_finished_at(now_);
    database_.query(sql::kDeleteJob).bind(id).run();
    put_row(sql::kInsertJob, failed);
  }
}

void StoreWriter::count_want(const RecordQuestion& question, const std::string& now) {
  const Key key = record_key(question);
  database_.query(sql::kCountWant).bind(now, key.digest).run();
  if (database_.changes() > 0) {
    return;
  }
  put_row(sql::kInsertWant, WantRow{question, 1, now, now}, std::uint64_t{1}, now);
  // A caller that may only read may ask for anything: the list must not grow with it.
  database_.query(sql::kTrimWants).bind(key.digest, kMaxWants).run();
}

std::uint64_t StoreWriter::pin_generation(const std::string& job, std::uint64_t generation) {
  if (const auto pinned = pinned_generation(job)) {
    return *pinned;
  }
  database_.query(sql::kInsertPin).bind(job, generation, now_).run();
  return generation;
}

Savings StoreWriter::add_savings(const Savings& more) {
  database_.query(sql::kAddSavings)
      .bind(now_, more.answers, more.timed, more.compile_ms, more.tuning_ms)
      .run();
  return savings();
}

void StoreWriter::drop_want(const RecordQuestion& question) {
  const Key key = record_key(question);
  database_.query(sql::kDropWant).bind(key.digest).run();
}

}  // namespace cubind
