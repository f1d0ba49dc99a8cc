// The SQL of the store, for every engine: parameters are `?`, or `?1` where one stands twice. What engines
// spell differently is a DialectText. The schemas are schemas/store.sql and store_postgresql.sql; what
// concerns one engine alone is in its folder. A statement that reads or writes a whole row takes its columns
// from fact_rows.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "server/store/dialect.hpp"
#include "server/store/fact_rows.hpp"

namespace cubind::store::sql {

/// The table's columns, its fact and their digest, as read_fact() takes them. `prefix`: "t." of a join.
template <typename Row>
std::vector<std::string> columns_of(const std::string& prefix = "") {
  std::vector<std::string> columns = kTable<Row>.columns;
  columns.insert(columns.end(), {"fact", "fact_sha256"});
  for (std::string& column : columns) {
    column.insert(0, prefix);
  }
  return columns;
}

/// `leading` and `trailing`: further columns, with their commas.
template <typename Row>
std::string select(const std::string& leading = "", const std::string& trailing = "") {
  return "SELECT " + leading + join(columns_of<Row>(), ", ") + trailing + " FROM " + kTable<Row>.name + " ";
}

/// Takes what bind_row() binds.
template <typename Row>
std::string insert(const std::vector<std::string>& others = {}) {
  std::vector<std::string> columns = columns_of<Row>();
  columns.insert(columns.end(), others.begin(), others.end());
  const std::vector<std::string> values(columns.size(), "?");
  return "INSERT INTO " + kTable<Row>.name + " (" + join(columns, ", ") + ") VALUES (" + join(values, ",") +
         ")";
}

/// Follows an INSERT: it replaces the row that has the same key.
template <typename Row>
std::string replacing() {
  std::vector<std::string> changes = columns_of<Row>();
  const auto rest = changes.begin() + static_cast<std::ptrdiff_t>(kTable<Row>.key);
  const std::vector<std::string> key(changes.begin(), rest);
  changes.erase(changes.begin(), rest);
  for (std::string& column : changes) {
    column += " = excluded." + column;
  }
  return " ON CONFLICT (" + join(key, ", ") + ") DO UPDATE SET " + join(changes, ", ");
}

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
inline const std::string kArtifacts = select<ArtifactRow>();
inline const std::string kArtifact = kArtifacts + "WHERE key = ?";
inline const std::string kArtifactByCubin = kArtifacts + "WHERE cubin = ? ORDER BY key LIMIT 1";
/// The workers' trials of a kernel's question, and those that other kernels of the same source have at the
/// same problem: equal keys are the same work.
inline const std::string kSharedByGroup =
    "(kernel = ? OR source = ?) AND problem = ? AND device_class = ? AND policy = ? AND "
    "driver_branch = ? AND origin = 'worker'";
inline const std::string kArtifactKeysOfGroup =
    "SELECT DISTINCT artifact_key FROM trials WHERE " + kSharedByGroup + " AND length(artifact_key) = 32";
/// Each once, as its newest artifact names it.
inline const std::string kToolchains =
    "SELECT " + join(columns_of<ArtifactRow>(), ", ") +
    " FROM (SELECT *, row_number() OVER (PARTITION BY toolchain ORDER BY created_at DESC, key) AS place FROM "
    "artifacts WHERE kernel = ?) AS of_kernel WHERE place = 1 ORDER BY created_at DESC, toolchain";
inline const std::string kDeleteArtifact = "DELETE FROM artifacts WHERE key = ?";
inline const std::string kDropArtifact = kDeleteArtifact + " AND cubin = ?";
inline const std::string kInsertArtifact = insert<ArtifactRow>({"created_at"}) + " ON CONFLICT DO NOTHING";

// ---- Device classes ----
inline const std::string kDeviceClasses = select<DeviceClass>() + "ORDER BY digest";
inline const std::string kDeviceClass = select<DeviceClass>() + "WHERE digest = ?";
inline const std::string kInsertDeviceClass = insert<DeviceClass>() + " ON CONFLICT DO NOTHING";
inline const std::string kMendDeviceClass = insert<DeviceClass>() + replacing<DeviceClass>();

// ---- Trials ----
/// A worker's trial has three values of its artifact.
inline const std::string kTrialColumns = "SELECT " + join(columns_of<TrialRow>("t."), ", ") + ", " +
                                         join(columns_of<ArtifactRow>("a."), ", ") +
                                         " FROM trials t LEFT JOIN artifacts a ON a.key = t.artifact_key ";
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
inline const std::string kKnownTrial = select<TrialRow>() + "WHERE key = ? AND origin = ? AND kernel = ?";
inline const std::string kHasTrial = "SELECT 1 FROM trials WHERE key = ? AND origin = ? LIMIT 1";
inline const std::string kPutTrial = insert<TrialRow>() + replacing<TrialRow>();

inline const std::string kOfTrial = "WHERE trial = ? AND origin = ? AND series = ? ORDER BY ";
inline const std::string kBlocks = select<BlockRow>() + kOfTrial + "stage, position";
/// Rows of all trials of a group at once.
inline const std::string kOfGroup = "WHERE origin = 'worker' AND trial IN (SELECT key FROM trials WHERE " +
                                    kSharedByGroup + ") AND series = ? ORDER BY trial, ";
inline const std::string kBlocksOfGroup = select<BlockRow>() + kOfGroup + "stage, position";
/// Screening's samples of the group's trials that worked or were not verified.
inline const std::string kScreenedOfGroup =
    "SELECT " + join(columns_of<BlockRow>("b."), ", ") +
    " FROM trials t JOIN blocks b ON b.trial = t.key AND b.origin = t.origin AND "
    "b.series = t.series WHERE t.kernel = ? AND t.problem = ? AND t.device_class = ? AND t.policy = ? AND "
    "t.driver_branch = ? AND t.origin = 'worker' AND t.series = ? AND "
    "t.outcome IN ('correct', 'unverified') AND b.stage = 0 ORDER BY b.position";
inline const std::string kDeleteBlock =
    "DELETE FROM blocks WHERE trial = ? AND origin = ? AND series = ? AND stage = ? AND position = ?";
inline const std::string kInsertBlock = insert<BlockRow>() + " ON CONFLICT DO NOTHING";

inline const std::string kVerificationOrder = "verification_digest, problem, after_timing";
inline const std::string kVerifications = select<VerificationRow>() + kOfTrial + kVerificationOrder;
inline const std::string kVerificationsOfGroup = select<VerificationRow>() + kOfGroup + kVerificationOrder;
/// A failure stays: kernels whose results differ from run to run pass sooner or later.
inline const std::string kPutVerification =
    insert<VerificationRow>() + replacing<VerificationRow>() + " WHERE verifications.outcome = 'correct'";

inline const std::string kDeleteTrial = "DELETE FROM trials WHERE key = ? AND origin = ? AND kernel = ?";
/// What no kernel's trial has any more.
inline const std::string kOrphaned = "NOT EXISTS (SELECT 1 FROM trials t WHERE t.key = trial AND t.origin = ";
inline const std::string kDeleteBlocks =
    "DELETE FROM blocks WHERE trial = ? AND origin = ? AND " + kOrphaned + "blocks.origin)";
inline const std::string kDeleteVerifications =
    "DELETE FROM verifications WHERE trial = ? AND origin = ? AND (outcome <> 'correct' OR " + kOrphaned +
    "verifications.origin))";

// ---- Records ----
inline const std::string kRecordColumns = select<RecordRow>("id, to_generation, ");
inline const std::string kRecordOrder =
    "ORDER BY kernel, key, driver_branch, toolchain_major, evidence, provisional, id";
inline const std::string kCurrentRecords = kRecordColumns + "WHERE to_generation IS NULL " + kRecordOrder;
inline const std::string kEveryRecord = kRecordColumns + kRecordOrder;
inline const std::string kReplacedAfter =
    kRecordColumns +
    "WHERE id > ?1 AND (?2 = '' OR kernel = ?2) AND to_generation IS NOT NULL ORDER BY id LIMIT ?3";
inline const std::string kRecordsAt =
    kRecordColumns + "WHERE from_generation <= ?1 AND (to_generation IS NULL OR to_generation > ?1) " +
    kRecordOrder;
inline const std::string kRecordsOfQuestion =
    kRecordColumns + "WHERE key = ? AND to_generation IS NULL " + kRecordOrder;
inline const std::string kCurrentOfQuestion = kRecordColumns +
                                              "WHERE key = ? AND driver_branch = ? AND toolchain_major = ? "
                                              "AND evidence = ? AND to_generation IS NULL ORDER BY id";
inline const std::string kEndRecord = "UPDATE records SET to_generation = ? WHERE id = ?";
inline const std::string kInsertRecord = insert<RecordRow>() + " RETURNING id";
/// A change of its fact.
inline const std::string kCurrentRecord = kRecordColumns + "WHERE id = ? AND to_generation IS NULL";
inline const std::string kSetFact = "UPDATE records SET fact = ?, fact_sha256 = ? WHERE id = ?";
inline const std::string kCurrentOfGroup = kRecordColumns +
                                           "WHERE to_generation IS NULL AND kernel = ? AND problem = ? AND "
                                           "device_class = ? AND policy = ? ORDER BY id";

// ---- Jobs and wants ----
inline const std::string kJobColumns = select<JobRow>();
inline const std::string kOpenJobs = kJobColumns + "WHERE ended = 0 ORDER BY created_at, id";
inline const std::string kEndedJobs = kJobColumns + "WHERE ended = 1 ORDER BY created_at, id";
inline const std::string kJob = kJobColumns + "WHERE id = ?";
inline const std::string kOutOfMemoryJobs = kJobColumns + "WHERE needs_bytes > 0 ORDER BY created_at, id";
inline const std::string kOutOfMemoryOfKey = kJobColumns + "WHERE needs_bytes > 0 AND key = ? ORDER BY id";
inline const std::string kAfterJob = "WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?";
inline const std::string kJobsAfter = kJobColumns + kAfterJob;
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
inline const std::string kInsertJob = insert<JobRow>();

// ---- What several daemons share; only PostgreSQL has more than one ----
inline const std::string kSharedJobs = select<JobRow>("", ", change, owner");
inline const std::string kJobsSince =
    kSharedJobs + "WHERE change > ? OR (ended = 0 AND CAST(? AS BIGINT) = 1) ORDER BY change";
inline const std::string kLastJobChange = "SELECT coalesce(max(change), 0) FROM jobs";
inline const std::string kOpenJobOfKey = kSharedJobs + "WHERE key = ? AND ended = 0";
inline const std::string kJobDoneSince =
    kSharedJobs + "WHERE key = ? AND change > ? AND state = 'done' ORDER BY change DESC LIMIT 1";
inline const std::string kRecordsSince = kRecordColumns + "WHERE change > ? ORDER BY change";
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

inline const std::string kPins =
    "SELECT job, generation, created_at FROM pins ORDER BY created_at DESC, job LIMIT ?";

inline const std::string kSavings = "SELECT since, answers, timed, compile_ms, tuning_ms FROM savings";
inline const std::string kAddSavings =
    "INSERT INTO savings (only_row, since, answers, timed, compile_ms, tuning_ms) VALUES (1,?,?,?,?,?) ON "
    "CONFLICT (only_row) DO UPDATE SET answers = savings.answers + excluded.answers, timed = savings.timed + "
    "excluded.timed, compile_ms = savings.compile_ms + excluded.compile_ms, tuning_ms = savings.tuning_ms + "
    "excluded.tuning_ms";

inline const std::string kWants = select<WantRow>("", ", count, last_at") + "ORDER BY count DESC, key";
inline const std::string kCountWant = "UPDATE wants SET count = count + 1, last_at = ? WHERE key = ?";
inline const std::string kInsertWant = insert<WantRow>({"count", "last_at"});
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

/// The next number of the identity, which rows that bring their own leave behind.
inline const DialectText kAfterCopy{
    "",
    "SELECT setval(pg_get_serial_sequence('records', 'id'), coalesce(max(id), 0) + 1, false) FROM records"};

}  // namespace cubind::store::sql
