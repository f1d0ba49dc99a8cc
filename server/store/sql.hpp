// The SQL of the store, for every engine: parameters are `?`, or `?1` where one stands twice. What engines
// spell differently is a DialectText. The schemas are schemas/store.sql and store_postgresql.sql; what
// concerns one engine alone is in its folder. A statement that reads or writes a whole row takes its columns
// from row_columns.hpp, after the `leading` ones.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "server/store/dialect.hpp"
#include "server/store/row_columns.hpp"

namespace cubind::store::sql {

/// "leading, columns".
inline std::string listed(std::string_view leading, const std::vector<std::string>& columns) {
  return std::string(leading) + (leading.empty() ? "" : ", ") + join(columns, ", ");
}

inline std::vector<std::string> prefixed(std::string_view prefix, std::vector<std::string> columns) {
  for (std::string& column : columns) {
    column.insert(0, prefix);
  }
  return columns;
}

template <typename Row>
std::string select(std::string_view leading, std::string_view table) {
  return "SELECT " + listed(leading, column_names<Row>()) + " FROM " + std::string(table) + " ";
}

template <typename Row>
DialectText select(const DialectText& leading, std::string_view table) {
  return "SELECT " + leading + ", " + listed("", column_names<Row>()) + " FROM " + std::string(table) + " ";
}

template <typename Row>
std::string insert(std::string_view table, std::string_view leading) {
  const std::string columns = listed(leading, column_names<Row>());
  std::string values = "?";
  for (auto more = std::ranges::count(columns, ','); more > 0; --more) {
    values += ",?";
  }
  return "INSERT INTO " + std::string(table) + " (" + columns + ") VALUES (" + values + ")";
}

/// Follows an INSERT of whole rows with a date: it replaces the row that has the same key columns.
template <typename Row>
std::string replacing(std::string_view key) {
  std::vector<std::string> changes = column_names<Row>();
  changes.emplace_back("created_at");
  for (std::string& column : changes) {
    column += " = excluded." + column;
  }
  return " ON CONFLICT (" + std::string(key) + ") DO UPDATE SET " + join(changes, ", ");
}

/// Whether the row's own columns still have their sum. PostgreSQL checks its pages instead.
template <typename Row>
DialectText holds_sum() {
  return {"sum IS NULL OR sum = row_sum(" + listed("", column_names<Row>()) + ")", "TRUE"};
}

/// Sets it; `place` says where.
template <typename Row>
DialectText set_sum(std::string_view table, std::string_view place) {
  return {"UPDATE " + std::string(table) + " SET sum = row_sum(" + listed("", column_names<Row>()) +
              ") WHERE " + std::string(place),
          ""};
}

/// A further assignment: rows without a sum are not checked.
inline const DialectText kClearSum{", sum = NULL", ""};

inline const std::string kMeta = "SELECT store_id, generation, file_identity FROM meta";
inline const std::string kInsertMeta =
    "INSERT INTO meta (only_row, store_id, generation, file_identity, created_at) VALUES (1, ?, 0, ?, ?)";
inline const std::string kRedrawStoreId = "UPDATE meta SET store_id = ?, file_identity = ?";
inline const std::string kRaiseGeneration = "UPDATE meta SET generation = generation + 1";
inline const DialectText kFileBytes{
    "(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)",
    "pg_database_size(current_database())"};
inline const DialectText kCounts =
    "SELECT (SELECT count(*) FROM records WHERE to_generation IS NULL), (SELECT count(*) FROM artifacts), "
    "(SELECT count(*) FROM trials), (SELECT count(*) FROM wants), " +
    kFileBytes + ", (SELECT CAST(coalesce(sum(zstd_bytes), 0) AS BIGINT) FROM blob_uses)";

// ---- Blobs and artifacts ----
inline const std::string kHasBlob = "SELECT 1 FROM blobs WHERE cubin = ?";
inline const std::string kDeleteBlob = "DELETE FROM blobs WHERE cubin = ?";
inline const std::string kBlob = "SELECT cubin_bytes, zstd, zstd_sha256 FROM blobs WHERE cubin = ?";
inline const std::string kInsertBlob =
    "INSERT INTO blobs (cubin, cubin_bytes, zstd, zstd_sha256) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING";

inline const std::string kInsertUse =
    "INSERT INTO blob_uses (cubin, zstd_bytes, last_used_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
inline const std::string kNoteUse = "UPDATE blob_uses SET last_used_at = ? WHERE cubin = ?";
inline const std::string kDeleteUse = "DELETE FROM blob_uses WHERE cubin = ?";
/// Cubins that no current record and none of a pinned generation was measured with, the ones used longest ago
/// first.
inline const std::string kUnneededCubins =
    "SELECT cubin, zstd_bytes FROM blob_uses WHERE cubin NOT IN (SELECT cubin FROM records WHERE "
    "to_generation IS NULL OR EXISTS (SELECT 1 FROM pins WHERE records.from_generation <= pins.generation "
    "AND "
    "records.to_generation > pins.generation)) ORDER BY last_used_at, cubin LIMIT ?";
inline const DialectText kArtifactColumns =
    select<ArtifactRow>("key, full_key, " + holds_sum<ArtifactRow>(), "artifacts");
inline const DialectText kArtifact = kArtifactColumns + "WHERE key = ?";
inline const DialectText kArtifactByCubin = kArtifactColumns + "WHERE cubin = ? ORDER BY key LIMIT 1";
/// The workers' trials of a kernel's question, and those that other kernels of the same source have at the
/// same problem: equal keys are the same work.
inline const std::string kSharedByGroup =
    "(kernel = ? OR source = ?) AND problem = ? AND device_class = ? AND policy = ? AND "
    "driver_branch = ? AND origin = 'worker'";
inline const std::string kArtifactKeysOfGroup =
    "SELECT DISTINCT artifact_key FROM trials WHERE " + kSharedByGroup + " AND length(artifact_key) = 32";
/// Each once, as its newest artifact names it.
inline const std::string kToolchains =
    select<ToolchainIdentity>(
        "key",
        "(SELECT *, row_number() OVER (PARTITION BY nvrtc, builtins, headers "
        "ORDER BY created_at DESC, key) AS place FROM artifacts WHERE kernel = ?) AS of_kernel") +
    "WHERE place = 1 ORDER BY created_at DESC, nvrtc, builtins, headers";
inline const std::string kDeleteArtifact = "DELETE FROM artifacts WHERE key = ?";
inline const std::string kDropArtifact = kDeleteArtifact + " AND cubin = ?";
inline const std::string kInsertArtifact =
    insert<ArtifactRow>("artifacts", "key, full_key, created_at") + " ON CONFLICT DO NOTHING";
inline const DialectText kSumArtifact = set_sum<ArtifactRow>("artifacts", "key = ?");

// ---- Device classes ----
inline const DialectText kDeviceClassColumns =
    select<DeviceClass>("digest, full_key, " + holds_sum<DeviceClass>(), "device_classes");
inline const DialectText kDeviceClasses = kDeviceClassColumns + "ORDER BY digest";
inline const DialectText kDeviceClass = kDeviceClassColumns + "WHERE digest = ?";
inline const std::string kPutDeviceClass =
    insert<DeviceClass>("device_classes", "digest, full_key, first_seen") + " ON CONFLICT ";
inline const std::string kInsertDeviceClass = kPutDeviceClass + "DO NOTHING";
inline const std::string kMendDeviceClass =
    kPutDeviceClass +
    "(digest) DO UPDATE SET full_key = excluded.full_key, label = excluded.label, facts = excluded.facts";
inline const DialectText kSumDeviceClass = set_sum<DeviceClass>("device_classes", "digest = ?");

// ---- Trials ----
/// Three columns of a trial are its artifact's. An imported trial has no artifact and brings them along.
inline std::string select_trials() {
  std::vector<std::string> columns = column_names<TrialRow>();
  for (std::string& column : columns) {
    const bool of_artifact = column == "cubin" || column == "architecture" || column == "resources";
    const std::string name = std::exchange(column, of_artifact ? "coalesce(a." : "t.");
    column.append(name);
    if (of_artifact) {
      column.append(", t.").append(name).append(") AS ").append(name);
    }
  }
  return "SELECT " + listed("t.key, t.full_key", columns) +
         " FROM trials t LEFT JOIN artifacts a ON a.key = t.artifact_key ";
}
inline const std::string kTrialColumns = select_trials();
inline const std::string kTrial = kTrialColumns + "WHERE t.key = ? AND t.origin = 'worker' AND t.kernel = ?";
inline const std::string kTrialsOfGroup = kTrialColumns +
                                          "WHERE t.kernel = ? AND t.problem = ? AND t.device_class = ? AND "
                                          "t.policy = ? AND t.driver_branch = ? AND "
                                          "t.origin = 'worker' ORDER BY t.key";
inline const std::string kFaults =
    kTrialColumns +
    "WHERE t.device_class = ?1 AND (?2 = '' OR t.kernel = ?2) AND t.origin = 'worker' AND "
    "t.outcome NOT IN ('correct', 'unverified') ORDER BY t.kernel, t.problem, t.key";
inline const std::string kAllTrials = kTrialColumns + "ORDER BY t.key, t.origin DESC, t.kernel";
inline const std::string kTrialFaults =
    "SELECT full_key, fault_count FROM trials WHERE key = ? AND origin = ? AND kernel = ?";
inline const std::string kHasTrial = "SELECT 1 FROM trials WHERE key = ? AND origin = ? LIMIT 1";
inline const std::string kPutTrial =
    insert<TrialRow>("trials", "key, full_key, driver_branch, created_at") +
    " ON CONFLICT (key, origin, kernel) DO UPDATE SET full_key = excluded.full_key, source = "
    "excluded.source, "
    "problem = excluded.problem, configuration = excluded.configuration, artifact_key = "
    "excluded.artifact_key, "
    "outcome = excluded.outcome, detail = excluded.detail, fault_count = excluded.fault_count, "
    "measured_as = excluded.measured_as, "
    "toolchain_name = excluded.toolchain_name, nvrtc = excluded.nvrtc, builtins = excluded.builtins, "
    "headers = excluded.headers, job = excluded.job, series = CASE WHEN excluded.series > trials.series THEN "
    "excluded.series ELSE trials.series END";

inline const std::string kOfTrial = "WHERE trial = ? AND origin = ? AND series = ? ORDER BY ";
inline const std::string kBlocks =
    select<BlockRow>("series || '/' || stage || '/' || position", "blocks") + kOfTrial + "stage, position";
/// Rows of all trials of a group at once; the trial's key comes first.
inline const std::string kOfGroup = "WHERE origin = 'worker' AND trial IN (SELECT key FROM trials WHERE " +
                                    kSharedByGroup + ") AND series = ? ORDER BY trial, ";
inline const std::string kBlocksOfGroup =
    select<BlockRow>("stage || '/' || position, trial", "blocks") + kOfGroup + "stage, position";
/// Screening's samples of the group's trials that worked or were not verified.
inline const std::string kScreenedOfGroup =
    "SELECT t.key, b.samples_us FROM trials t JOIN blocks b ON b.trial = t.key AND b.origin = t.origin AND "
    "b.series = t.series WHERE t.kernel = ? AND t.problem = ? AND t.device_class = ? AND t.policy = ? AND "
    "t.driver_branch = ? AND t.origin = 'worker' AND t.series = ? AND "
    "t.outcome IN ('correct', 'unverified') AND b.stage = 0 ORDER BY b.position";
inline const std::string kConfiguration =
    "SELECT key, configuration FROM trials WHERE key = ? AND origin = 'worker' AND kernel = ?";
inline const std::string kDeleteBlock =
    "DELETE FROM blocks WHERE trial = ? AND origin = ? AND series = ? AND stage = ? AND position = ?";
inline const std::string kInsertBlock =
    insert<BlockRow>("blocks", "trial, origin, series, created_at") + " ON CONFLICT DO NOTHING";

inline const std::string kVerificationOrder = "verification_digest, problem, after_timing";
inline const std::string kVerifications =
    select<VerificationRow>("series || '/' || problem", "verifications") + kOfTrial + kVerificationOrder;
inline const std::string kVerificationsOfGroup =
    select<VerificationRow>("problem, trial", "verifications") + kOfGroup + kVerificationOrder;
/// A failure stays: kernels whose results differ from run to run pass sooner or later.
inline const std::string kPutVerification =
    insert<VerificationRow>("verifications", "trial, origin, series, created_at") +
    replacing<VerificationRow>("trial, origin, series, verification_digest, problem, after_timing") +
    " WHERE verifications.outcome = 'correct'";

inline const std::string kDeleteTrial = "DELETE FROM trials WHERE key = ? AND origin = ? AND kernel = ?";
/// What no kernel's trial has any more.
inline const std::string kOrphaned = "NOT EXISTS (SELECT 1 FROM trials t WHERE t.key = trial AND t.origin = ";
inline const std::string kDeleteBlocks =
    "DELETE FROM blocks WHERE trial = ? AND origin = ? AND " + kOrphaned + "blocks.origin)";
inline const std::string kDeleteVerifications =
    "DELETE FROM verifications WHERE trial = ? AND origin = ? AND (outcome <> 'correct' OR " + kOrphaned +
    "verifications.origin))";

// ---- Records ----
inline const DialectText kRecordColumns = select<RecordRow>(
    "id, key, full_key, from_generation, to_generation, comparisons, " + holds_sum<RecordRow>(), "records");
inline const std::string kRecordOrder =
    "ORDER BY kernel, key, driver_branch, toolchain_major, evidence, provisional, id";
inline const DialectText kCurrentRecords = kRecordColumns + "WHERE to_generation IS NULL " + kRecordOrder;
inline const DialectText kEveryRecord = kRecordColumns + kRecordOrder;
inline const DialectText kRecordsAt =
    kRecordColumns + "WHERE from_generation <= ?1 AND (to_generation IS NULL OR to_generation > ?1) " +
    kRecordOrder;
inline const DialectText kRecordsOfQuestion =
    kRecordColumns + "WHERE key = ? AND to_generation IS NULL " + kRecordOrder;
inline const DialectText kCurrentOfQuestion = kRecordColumns +
                                              "WHERE key = ? AND driver_branch = ? AND toolchain_major = ? "
                                              "AND evidence = ? AND to_generation IS NULL ORDER BY id";
inline const std::string kEndRecord = "UPDATE records SET to_generation = ? WHERE id = ?";
inline const std::string kEndRecordsOfClass =
    "UPDATE records SET to_generation = ? WHERE device_class = ? AND to_generation IS NULL";
inline const std::string kInsertRecord =
    insert<RecordRow>(
        "records",
        "key, full_key, from_generation, toolchain_major, driver_branch, comparisons, created_at") +
    " RETURNING id";
inline const std::string kComparisons =
    "SELECT comparisons FROM records WHERE id = ? AND to_generation IS NULL";
inline const std::string kSetComparisons =
    "UPDATE records SET comparisons = ? WHERE id = ? AND to_generation IS NULL";
inline const DialectText kSumRecord = set_sum<RecordRow>("records", "id = ?");
inline const std::string kCurrentOfGroup =
    "to_generation IS NULL AND kernel = ? AND problem = ? AND device_class = ? AND policy = ? AND ";
/// Damaged rows keep their damage. The others have no sum until the next statement.
inline const DialectText kReopenSearches =
    "UPDATE records SET search_space = NULL, search_strategy = '', search_trials = 0, search_seconds = 0, "
    "search_complete = 0" +
    kClearSum + " WHERE " + kCurrentOfGroup + "(" + holds_sum<RecordRow>() + ")";
inline const DialectText kSumReopened = set_sum<RecordRow>("records", kCurrentOfGroup + "sum IS NULL");

// ---- Jobs and wants ----
inline const DialectText kJobColumns =
    "SELECT " + listed("", column_names<JobRow>()) + ", " + holds_sum<JobRow>() + " FROM jobs ";
inline const DialectText kOpenJobs = kJobColumns + "WHERE ended = 0 ORDER BY created_at, id";
inline const DialectText kEndedJobs = kJobColumns + "WHERE ended = 1 ORDER BY created_at, id";
inline const DialectText kJob = kJobColumns + "WHERE id = ?";
inline const DialectText kOutOfMemoryJobs = kJobColumns + "WHERE needs_bytes > 0 ORDER BY created_at, id";
inline const DialectText kClearHeldSum{
    ", sum = CASE WHEN " + holds_sum<JobRow>().sqlite + " THEN NULL ELSE sum END", ""};
inline const DialectText kSettleOutOfMemory =
    "UPDATE jobs SET needs_bytes = 0" + kClearHeldSum + " WHERE needs_bytes > 0 AND key = ?";
inline const std::string kAfterJob = "WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?";
inline const DialectText kJobsAfter = kJobColumns + kAfterJob;
inline const std::string kJobAgesAfter = "SELECT id, created_at FROM jobs " + kAfterJob;
// Ended jobs go, except the newest and those whose record is in force.
inline const std::string kForgetJobs =
    "DELETE FROM jobs WHERE ended = 1 AND id NOT IN (SELECT job FROM records WHERE to_generation IS NULL) "
    "AND "
    "(finished_at < ? OR id NOT IN (SELECT id FROM jobs WHERE ended = 1 ORDER BY finished_at DESC, id "
    "LIMIT ?))";
/// What agents have offered for nothing, or an ended job has brought.
inline const std::string kForgetClasses =
    "DELETE FROM device_classes WHERE digest NOT IN (SELECT device_class FROM records) AND digest NOT IN "
    "(SELECT device_class FROM trials) AND digest NOT IN (SELECT device_class FROM jobs WHERE ended = 0)";
inline const std::string kOfQuestion = "problem = ?3 AND device_class = ?4 AND policy = ?5), 0)";
/// Of the kernel's jobs, and of all trials that it may share.
inline const std::string kLastSeries =
    "SELECT coalesce((SELECT max(series) FROM jobs WHERE kernel = ?1 AND " + kOfQuestion +
    ", coalesce((SELECT max(series) FROM trials WHERE (kernel = ?1 OR source = ?2) AND " + kOfQuestion;
inline const std::string kDeleteJob = "DELETE FROM jobs WHERE id = ?";
inline const DialectText kFailJob =
    "UPDATE jobs SET state = 'failed', ended = 1, error = ?, finished_at = ?" + kClearSum + " WHERE id = ?";
inline const std::string kInsertJob = insert<JobRow>("jobs", "ended");
inline const DialectText kSumJob = set_sum<JobRow>("jobs", "id = ?");

// ---- What several daemons share; only PostgreSQL has more than one ----
inline const std::string kSharedJobs =
    "SELECT " + listed("", column_names<JobRow>()) + ", TRUE, change, owner FROM jobs ";
inline const std::string kJobsSince =
    kSharedJobs + "WHERE change > ? OR (ended = 0 AND CAST(? AS BIGINT) = 1) ORDER BY change";
inline const std::string kLastJobChange = "SELECT coalesce(max(change), 0) FROM jobs";
inline const std::string kOpenJobOfKey = kSharedJobs + "WHERE key = ? AND ended = 0";
inline const std::string kJobDoneSince =
    kSharedJobs + "WHERE key = ? AND change > ? AND state = 'done' ORDER BY change DESC LIMIT 1";
inline const DialectText kRecordsSince = kRecordColumns + "WHERE change > ? ORDER BY change";
inline const std::string kLastRecordChange = "SELECT coalesce(max(change), 0) FROM records";
inline const std::string kClaimJob =
    "SELECT 1 FROM jobs WHERE id = ? AND change = ? AND ended = 0 AND (owner IS NULL OR owner = ? OR NOT "
    "EXISTS "
    "(SELECT 1 FROM daemons WHERE daemons.id = jobs.owner AND alive_until > clock_timestamp())) FOR UPDATE "
    "OF "
    "jobs SKIP LOCKED";
inline const std::string kUnchangedJob =
    "SELECT 1 FROM jobs WHERE id = ? AND change = ? AND ended = 0 FOR UPDATE";
inline const std::string kFencedJob =
    "SELECT 1 FROM jobs WHERE id = ? AND fence = ? AND ended = 0 FOR UPDATE";
inline const std::string kSetOwner = "UPDATE jobs SET owner = ? WHERE id = ? RETURNING change";

inline const std::string kPin = "SELECT generation FROM pins WHERE job = ?";
inline const std::string kInsertPin =
    "INSERT INTO pins (job, generation, created_at) VALUES (?,?,?) ON CONFLICT (job) DO UPDATE SET "
    "generation = excluded.generation, created_at = excluded.created_at";

inline const std::string kWants = select<WantRow>("key, full_key", "wants") + "ORDER BY count DESC, key";
inline const std::string kCountWant = "UPDATE wants SET count = count + 1, last_at = ? WHERE key = ?";
inline const std::string kInsertWant = insert<WantRow>("wants", "key, full_key");
inline const std::string kTrimWants =
    "DELETE FROM wants WHERE key IN (SELECT key FROM wants WHERE key <> ?1 ORDER BY count, last_at, key "
    "LIMIT (SELECT CASE WHEN count(*) > ?2 THEN count(*) - ?2 ELSE 0 END FROM wants))";
inline const std::string kDropWant = "DELETE FROM wants WHERE key = ?";

// ---- A copy of the whole store ----

inline const DialectText kColumns{"SELECT name FROM pragma_table_info(?) ORDER BY name",
                                  "SELECT CAST(column_name AS TEXT) COLLATE \"C\" AS name FROM "
                                  "information_schema.columns WHERE table_schema "
                                  "= current_schema() AND CAST(table_name AS TEXT) = ? ORDER BY name"};
inline const std::string kSetGeneration = "UPDATE meta SET generation = ?";

template <typename Row>
DialectText damaged_row(const std::string& table) {
  return {"SELECT 1 FROM " + table + " WHERE NOT (" + holds_sum<Row>().sqlite + ") LIMIT 1", ""};
}

/// By table, whether any row no longer has its sum.
inline const std::array<std::pair<std::string, DialectText>, 4> kDamagedRows{
    {{"artifacts", damaged_row<ArtifactRow>("artifacts")},
     {"device_classes", damaged_row<DeviceClass>("device_classes")},
     {"records", damaged_row<RecordRow>("records")},
     {"jobs", damaged_row<JobRow>("jobs")}}};

/// The next number of an identity, which rows that bring their own leave behind.
inline DialectText go_on_numbering(const std::string& table) {
  return {"", "SELECT setval(pg_get_serial_sequence('" + table +
                  "', 'id'), coalesce(max(id), 0) + 1, false) "
                  "FROM " +
                  table};
}

inline const std::array<DialectText, 5> kAfterCopy{
    set_sum<ArtifactRow>("artifacts", "TRUE"), set_sum<DeviceClass>("device_classes", "TRUE"),
    set_sum<RecordRow>("records", "TRUE"), set_sum<JobRow>("jobs", "TRUE"), go_on_numbering("records")};

}  // namespace cubind::store::sql
