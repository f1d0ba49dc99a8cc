// All SQL of cubind beside schemas/store.sql. PostgreSQL will want this file and the schema, nothing else.
#pragma once

#include <string>

namespace cubind::store::sql {

inline const std::string kMeta = "SELECT store_id, generation, file_identity FROM meta";
inline const std::string kInsertMeta =
    "INSERT INTO meta (only_row, store_id, generation, file_identity, created_at) VALUES (1, ?, 0, ?, ?)";
inline const std::string kRedrawStoreId = "UPDATE meta SET store_id = ?, file_identity = ?";
inline const std::string kRaiseGeneration = "UPDATE meta SET generation = generation + 1";
inline const std::string kInsertBallast = "INSERT INTO ballast (bytes) VALUES (zeroblob(262144))";
inline const std::string kDeleteBallast = "DELETE FROM ballast";
inline const std::string kCounts =
    "SELECT (SELECT count(*) FROM records WHERE to_generation IS NULL), (SELECT count(*) FROM artifacts), "
    "(SELECT count(*) FROM trials), (SELECT count(*) FROM blocks), (SELECT count(*) FROM wants), "
    "(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)";

// ---- Blobs and artifacts ----
inline const std::string kHasBlob = "SELECT 1 FROM blobs WHERE cubin = ?";
inline const std::string kDeleteBlob = "DELETE FROM blobs WHERE cubin = ?";
inline const std::string kBlob = "SELECT cubin_bytes, zstd, zstd_sha256 FROM blobs WHERE cubin = ?";
inline const std::string kInsertBlob =
    "INSERT INTO blobs (cubin, cubin_bytes, zstd, zstd_sha256) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING";

inline const std::string kArtifactColumns =
    "SELECT key, full_key, cubin, kernel, architecture, cubin_bytes, entries, entry_symbols, resources, "
    "toolchain_name, nvrtc, "
    "builtins, headers, compile_ms FROM artifacts ";
inline const std::string kArtifact = kArtifactColumns + "WHERE key = ?";
inline const std::string kArtifactByCubin = kArtifactColumns + "WHERE cubin = ? ORDER BY key LIMIT 1";
inline const std::string kArtifactsOfGroup = kArtifactColumns +
                                             "WHERE key IN (SELECT artifact_key FROM trials WHERE kernel = ? "
                                             "AND problem = ? AND device_class = ? AND policy = ? AND "
                                             "driver_branch = ? AND origin = 'worker') ORDER BY key";
inline const std::string kToolchains =
    "SELECT key, toolchain_name, nvrtc, builtins, headers FROM artifacts WHERE kernel = ? GROUP BY nvrtc, "
    "builtins, headers "
    "ORDER BY max(created_at) DESC, nvrtc, builtins, headers";
inline const std::string kDeleteArtifact = "DELETE FROM artifacts WHERE key = ?";
inline const std::string kInsertArtifact =
    "INSERT INTO artifacts (key, full_key, cubin, kernel, architecture, cubin_bytes, entries, entry_symbols, "
    "resources, "
    "toolchain_name, nvrtc, builtins, headers, compile_ms, created_at) VALUES "
    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
    "ON CONFLICT DO NOTHING";

// ---- Device classes ----
inline const std::string kDeviceClasses =
    "SELECT digest, full_key, label, facts FROM device_classes ORDER BY digest";
inline const std::string kDeviceClass =
    "SELECT digest, full_key, label, facts FROM device_classes WHERE digest = ?";
inline const std::string kMendDeviceClass =
    "UPDATE device_classes SET full_key = ?, label = ?, facts = ? WHERE digest = ?";
inline const std::string kInsertDeviceClass =
    "INSERT INTO device_classes (digest, full_key, label, facts, first_seen) VALUES (?,?,?,?,?) ON CONFLICT "
    "DO NOTHING";

// ---- Trials ----
inline const std::string kTrialColumns =
    "SELECT t.key, t.full_key, t.origin, t.artifact_key, t.kernel, t.problem, t.configuration, "
    "t.device_class, t.policy, "
    "t.driver_cuda, t.driver_version, t.outcome, t.detail, t.fault_count, t.toolchain_name, t.nvrtc, "
    "t.builtins, t.headers, "
    "coalesce(a.cubin, t.cubin), coalesce(a.architecture, t.architecture), coalesce(a.resources, "
    "t.resources), t.series, t.job "
    "FROM trials t LEFT JOIN artifacts a ON a.key = t.artifact_key ";
inline const std::string kTrial = kTrialColumns + "WHERE t.key = ? AND t.origin = 'worker'";
inline const std::string kTrialsOfGroup = kTrialColumns +
                                          "WHERE t.kernel = ? AND t.problem = ? AND t.device_class = ? AND "
                                          "t.policy = ? AND t.driver_branch = ? AND "
                                          "t.origin = 'worker' ORDER BY t.key";
inline const std::string kAllTrials = kTrialColumns + "ORDER BY t.key, t.origin DESC";
inline const std::string kTrialId =
    "SELECT id, full_key, fault_count FROM trials WHERE key = ? AND origin = ?";
inline const std::string kInsertTrial =
    "INSERT INTO trials (key, full_key, origin, artifact_key, kernel, problem, configuration, device_class, "
    "policy, "
    "driver_branch, driver_cuda, driver_version, outcome, detail, fault_count, toolchain_name, nvrtc, "
    "builtins, headers, cubin, "
    "architecture, resources, series, job, created_at) VALUES "
    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
inline const std::string kUpdateTrial =
    "UPDATE trials SET full_key = ?, problem = ?, configuration = ?, artifact_key = ?, outcome = ?, "
    "detail = ?, fault_count = ?, toolchain_name = ?, nvrtc = ?, builtins = ?, headers = ?, "
    "series = max(series, ?), job = ? WHERE id = ?";

inline const std::string kBlocks =
    "SELECT trial || '/' || series || '/' || stage || '/' || position, stage, position, samples_us, sm_mhz, "
    "memory_mhz, temperature_c, power_mw, throttle_reasons, "
    "throttled, contended, "
    "timer, tick_us, judged_against_us, job FROM blocks WHERE series = ? AND trial = (SELECT id FROM trials "
    "WHERE key = ? AND "
    "origin = ?) ORDER BY stage, position";
inline const std::string kDeleteBlock =
    "DELETE FROM blocks WHERE trial = ? AND series = ? AND stage = ? AND position = ?";
inline const std::string kInsertBlock =
    "INSERT INTO blocks (trial, series, stage, position, samples_us, sm_mhz, memory_mhz, temperature_c, "
    "power_mw, "
    "throttle_reasons, throttled, contended, timer, tick_us, judged_against_us, job, created_at) "
    "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING";

inline const std::string kVerifications =
    "SELECT trial || '/' || series || '/' || problem, verification_digest, problem, after_timing, outcome, "
    "worst_excess, worst_output, worst_index, "
    "mismatches, "
    "same_bits, detail, reference, job FROM verifications WHERE series = ? AND trial = (SELECT id FROM "
    "trials WHERE key = ? AND "
    "origin = ?) ORDER BY verification_digest, problem, after_timing";
inline const std::string kPutVerification =
    "INSERT OR REPLACE INTO verifications (trial, series, verification_digest, problem, after_timing, "
    "outcome, worst_excess, "
    "worst_output, worst_index, mismatches, same_bits, detail, reference, job, created_at) "
    "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

// ---- Records ----
inline const std::string kRecordColumns =
    "SELECT id, key, full_key, kernel, interface, problem, device_class, policy, numerics, namespace, "
    "from_generation, "
    "to_generation, configuration, trial, cubin, architecture, toolchain_name, nvrtc, builtins, headers, "
    "driver_cuda, "
    "driver_version, evidence, provisional, median_us, median_low_us, median_high_us, samples, sm_mhz, "
    "power_limit_mw, "
    "contended, throttled, gain_over_default, timer, tick_us, measured_at, verified, verification_digest, "
    "verification_reference, worst_excess, verified_problems, same_bits, verified_after_timing, finalists, "
    "job FROM records ";
inline const std::string kRecordOrder =
    "ORDER BY kernel, key, driver_branch, toolchain_major, evidence, provisional, id";
inline const std::string kCurrentRecords = kRecordColumns + "WHERE to_generation IS NULL " + kRecordOrder;
inline const std::string kEveryRecord = kRecordColumns + kRecordOrder;
inline const std::string kRecordsAt =
    kRecordColumns + "WHERE from_generation <= ?1 AND (to_generation IS NULL OR to_generation > ?1) " +
    kRecordOrder;
inline const std::string kRecordsOfQuestion =
    kRecordColumns + "WHERE key = ? AND to_generation IS NULL " + kRecordOrder;
inline const std::string kCurrentOfQuestion = kRecordColumns +
                                              "WHERE key = ? AND driver_branch = ? AND toolchain_major = ? "
                                              "AND evidence = ? AND to_generation IS NULL ORDER BY id";
inline const std::string kEndRecord = "UPDATE records SET to_generation = ? WHERE id = ?";
inline const std::string kInsertRecord =
    "INSERT INTO records (key, full_key, kernel, interface, problem, device_class, policy, numerics, "
    "namespace, "
    "from_generation, configuration, trial, cubin, architecture, toolchain_name, toolchain_major, nvrtc, "
    "builtins, headers, "
    "driver_branch, driver_cuda, driver_version, evidence, provisional, median_us, median_low_us, "
    "median_high_us, samples, "
    "sm_mhz, power_limit_mw, contended, throttled, gain_over_default, timer, tick_us, measured_at, verified, "
    "verification_digest, verification_reference, worst_excess, verified_problems, same_bits, "
    "verified_after_timing, finalists, "
    "job, created_at) VALUES "
    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

// ---- Jobs and wants ----
inline const std::string kJobColumns =
    "SELECT id, kind, key, kernel, interface, problem, device_class, policy, numerics, namespace, state, "
    "fence, series, retune, "
    "interruptions, error, note, created_at, finished_at, elapsed_ms, configurations, configurations_done, "
    "nvrtc_calls, "
    "outcomes, record_trial, compile, architecture, driver_cuda, for_bucket, needs_bytes FROM jobs ";
inline const std::string kOpenJobs = kJobColumns + "WHERE ended = 0 ORDER BY created_at, id";
inline const std::string kAllJobs = kJobColumns + "ORDER BY created_at, id";
inline const std::string kOutOfMemoryJobs = kJobColumns + "WHERE needs_bytes > 0 ORDER BY created_at, id";
inline const std::string kSettleOutOfMemory =
    "UPDATE jobs SET needs_bytes = 0 WHERE needs_bytes > 0 AND key = ?";
inline const std::string kLastSeries =
    "SELECT coalesce(max(series), 0) FROM jobs WHERE kernel = ? AND problem = ? AND device_class = ? AND "
    "policy = ?";
// Not OR REPLACE: that would drop another open job with the same key instead of refusing this one.
inline const std::string kDeleteJob = "DELETE FROM jobs WHERE id = ?";
inline const std::string kFailJob =
    "UPDATE jobs SET state = 'failed', ended = 1, error = ?, finished_at = ? WHERE id = ?";
inline const std::string kInsertJob =
    "INSERT INTO jobs (id, kind, key, kernel, interface, problem, device_class, policy, numerics, namespace, "
    "state, "
    "ended, fence, series, retune, interruptions, error, note, created_at, finished_at, elapsed_ms, "
    "configurations, "
    "configurations_done, nvrtc_calls, outcomes, record_trial, compile, architecture, driver_cuda, "
    "for_bucket, needs_bytes) "
    "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

inline const std::string kPin = "SELECT generation FROM pins WHERE job = ?";
inline const std::string kInsertPin =
    "INSERT OR REPLACE INTO pins (job, generation, created_at, last_used_at) VALUES (?,?,?,?)";

inline const std::string kWants =
    "SELECT key, full_key, kernel, interface, problem, device_class, policy, numerics, namespace, count, "
    "first_at, last_at FROM wants "
    "ORDER BY count DESC, key";
inline const std::string kCountWant = "UPDATE wants SET count = count + 1, last_at = ? WHERE key = ?";
inline const std::string kInsertWant =
    "INSERT INTO wants (key, full_key, kernel, interface, problem, device_class, policy, numerics, "
    "namespace, count, first_at, last_at) VALUES (?,?,?,?,?,?,?,?,?,1,?,?)";
inline const std::string kTrimWants =
    "DELETE FROM wants WHERE key IN (SELECT key FROM wants WHERE key <> ? ORDER BY count, last_at, key "
    "LIMIT max(0, (SELECT count(*) FROM wants) - ?))";
inline const std::string kDropWant = "DELETE FROM wants WHERE key = ?";

}  // namespace cubind::store::sql
