// SQL for SQLite alone: whether a file is of use, and the check of all that it holds.
#pragma once

#include <array>
#include <string>

#include "server/store/sql.hpp"

namespace cubind::store::sql {

/// Writes and removes what a full disk has no room for.
inline const std::string kInsertBallast = "INSERT INTO ballast (bytes) VALUES (zeroblob(262144))";
inline const std::string kDeleteBallast = "DELETE FROM ballast";

// ---- Whether the file is of use ----
/// Between them they name every table and column.
inline constexpr std::array kStatements{
    &kMeta,           &kBlob,          &kInsertBlob, &kArtifact,    &kInsertArtifact, &kMendDeviceClass,
    &kTrial,          &kPutTrial,      &kBlocks,     &kInsertBlock, &kVerifications,  &kPutVerification,
    &kCurrentRecords, &kInsertRecord,  &kJob,        &kInsertJob,   &kWants,          &kInsertWant,
    &kInsertPin,      &kInsertBallast, &kInsertUse};
/// Check that the indexes of the tables that answers come from agree with them: "ok", or what is wrong.
inline const std::string kCheckClasses = "PRAGMA integrity_check(device_classes)";
inline const std::string kCheckBlobs = "PRAGMA integrity_check(blobs)";
inline const std::string kCheckArtifacts = "PRAGMA integrity_check(artifacts)";
inline const std::string kCheckRecords = "PRAGMA integrity_check(records)";
inline const std::string kCheckJobs = "PRAGMA integrity_check(jobs)";
inline constexpr std::array kChecks{&kCheckClasses, &kCheckBlobs, &kCheckArtifacts, &kCheckRecords,
                                    &kCheckJobs};
/// What a daemon reads when it starts, to the last page, and by the same indexes.
inline const std::string kAllClasses = "SELECT total(length(fact)) FROM device_classes";
inline const std::string kAllRecords = "SELECT total(length(fact)) FROM records";
inline const std::string kAllJobs = "SELECT total(length(fact)) FROM jobs";
inline constexpr std::array kWholeTables{&kAllClasses,     &kAllRecords, &kAllJobs,        &kDeviceClasses,
                                         &kCurrentRecords, &kOpenJobs,   &kOutOfMemoryJobs};

// ---- A check of all that there is ----
inline const std::string kIntegrity = "PRAGMA integrity_check";
inline const std::string kForeignKeys = "PRAGMA foreign_key_check";
inline const std::string kCubins = "SELECT cubin FROM blobs ORDER BY cubin";
inline const std::string kRecordsWithoutTrial =
    "SELECT id, kernel, problem FROM records r WHERE to_generation IS NULL AND evidence = 'measured' AND "
    "NOT EXISTS (SELECT 1 FROM trials t WHERE t.key = r.trial AND t.kernel = r.kernel) ORDER BY id";
inline const std::string kCountRecordsWithoutCubin =
    "SELECT count(*) FROM records WHERE to_generation IS NULL AND cubin NOT IN (SELECT cubin FROM blobs)";

}  // namespace cubind::store::sql
