// The store's content as plain structs. No type of the database is visible outside server/store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "plan/answer.hpp"
#include "plan/answer_wire.hpp"
#include "plan/facts/facts.hpp"
#include "plan/problem.hpp"
#include "plan/search.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {

/// A point in the table's history. `number` grows with every change of the records. `store_id` (16 random
/// bytes) is new for each created, rebuilt or restored store; earlier numbers are then meaningless.
struct Generation {
  std::string store_id;
  std::uint64_t number = 0;
  bool operator==(const Generation&) const = default;
};

struct DriverVersion {
  std::uint32_t cuda = 0;  // cuDriverGetVersion; 0: no driver
  std::string version;     // "580.159.04"
  bool operator==(const DriverVersion&) const = default;
};

/// A compiled variant. Its bytes are stored as a Blob under `cubin`, because two keys may give the same
/// bytes.
struct ArtifactRow {
  Key key;
  Digest cubin;  // of the uncompressed cubin
  std::string kernel;
  std::string architecture;  // "sm_90"
  std::uint64_t cubin_bytes = 0;
  std::vector<std::string> entries;        // name expressions, in launch order
  std::vector<std::string> entry_symbols;  // lowered names, in launch order
  std::vector<EntryResources> resources;
  ToolchainIdentity toolchain;
  double compile_ms = 0;
  bool operator==(const ArtifactRow&) const = default;
};

/// A cubin's bytes.
struct Blob {
  Digest cubin;
  std::uint64_t cubin_bytes = 0;
  std::string zstd;  // one zstd frame of the cubin
};

/// The origin of a trial. Imported trials are stored separately and never replace a measurement of this
/// store.
enum class Origin : std::uint8_t { Worker = 0, Import = 1 };

/// One configuration of one problem on one device class, and the outcome of its trial for a kernel. Other
/// kernels may share the trial: blocks and verifications belong to its key, so they have them too.
struct TrialRow {
  Key key;  // `full` is empty for an imported trial: tables have only the digest
  Origin origin = Origin::Worker;
  std::optional<Digest> artifact_key;  // absent for imported trials and if nothing was compiled
  std::string kernel;
  Digest source;  // source_digest() of the kernel; zero: unknown, as for imported trials
  Problem problem;
  Configuration configuration;
  Digest device_class;
  Policy policy;
  DriverVersion driver;
  Outcome outcome = Outcome::Correct;
  /// The trial that was measured instead; blocks and verifications belong to that one.
  std::optional<Digest> measured_as;
  ToolchainIdentity toolchain;
  /// The trial's cubin: from the artifact for a worker's trial, from the table for an imported one.
  Digest cubin;
  std::uint32_t series = 0;  // a retune starts a new series; blocks and verifications of older ones stay
  std::string job_id;
  v1::StoredTrial fact;  // what the members above do not say

  v1::TrialHeader& header() { return *fact.mutable_trial(); }
  const v1::TrialHeader& header() const { return fact.trial(); }
};
/// By the bytes that are stored.
bool operator==(const TrialRow& a, const TrialRow& b);

/// Samples of one trial; (trial, origin, series, stage, index) is unique. The trial is that of the block
/// itself, or one with the same code.
using BlockRow = v1::StoredBlock;
/// One comparison of a trial with its reference; the trial as of blocks.
using VerificationRow = v1::StoredVerification;

inline Digest trial_of(const BlockRow& row) { return digest_from_wire(row.block().trial_key(), "trial_key"); }
inline Digest trial_of(const VerificationRow& row) {
  return digest_from_wire(row.verification().trial_key(), "trial_key");
}

/// The winner for one question. Append-only: a replaced row gets `to_generation`. Current rows are unique per
/// (question, driver branch, toolchain major, evidence, provisional).
struct RecordRow {
  std::int64_t id = 0;      // set by the store
  RecordQuestion question;  // with the measured problem
  Digest key;               // record_key(question).digest
  std::uint64_t from_generation = 0;
  std::optional<std::uint64_t> to_generation;  // absent: current

  Configuration configuration;
  Digest trial;  // key of the winning trial
  Digest cubin;  // that was measured
  std::string architecture;
  ToolchainIdentity toolchain;
  DriverVersion driver;

  Evidence evidence = Evidence::None;
  bool provisional = false;
  Timing timing;
  VerificationSummary verification;
  std::vector<Digest> finalists;                // trial keys
  SearchSummary search;                         // the search that chose the winner
  std::vector<LibraryComparison> over_library;  // the latest at the end
  std::string job_id;
  std::string unknown_fields;  // of its message: what a later version has added
};

/// The question of a miss that started no job.
struct WantRow {
  RecordQuestion question;
  std::uint64_t count = 0;
  std::string first_at, last_at;
};

using JobKind = v1::Job::Kind;
using JobState = v1::Job::State;

inline bool has_ended(JobState state) { return state >= v1::Job::DONE; }

using v1::OutcomeCount;
using v1::StageTime;

/// A job of the persisted queue. Progress within a lease is only in RAM.
struct JobRow {
  std::string id;
  JobKind kind = v1::Job::TUNE;
  Digest key;  // single-flight: at most one job per key is open
  RecordQuestion question;
  JobState state = v1::Job::QUEUED;
  Digest record_trial;  // the winner's trial; zero: none
  /// COMPILE_WINNER: the configurations to compile. TUNE: only these and the default are tried; empty: a
  /// search.
  std::vector<Configuration> listed;
  SearchBudget budget;               // of a job that tunes
  std::vector<Configuration> hints;  // where its search begins; set with the first lease
  v1::StoredJob fact;                // what the members above do not say

  v1::Job& shown() { return *fact.mutable_job(); }
  const v1::Job& shown() const { return fact.job(); }
};

/// A training job's generation.
struct PinRow {
  std::string job;  // in a namespace: its name, a line end, the job's name
  std::uint64_t generation = 0;
  std::string created_at;
};

/// The work that answers have spared their callers: the measured times of the same work where it was done.
struct Savings {
  std::string since;          // when it was first counted; empty: not yet
  std::uint64_t answers = 0;  // that gave a process an artifact which it lacked, without waiting for work
  std::uint64_t timed = 0;    // of these, with a measured time
  std::uint64_t compile_ms = 0;
  std::uint64_t tuning_ms = 0;
};

/// A job that several daemons on one database share.
struct SharedJob {
  JobRow job;
  std::uint64_t change = 0;  // the number of the row's last change
  std::string owner;         // the id of the daemon that has leased it; empty: none
};

/// The key of a job that tunes.
inline Digest tuning_key(const JobRow& job) {
  return job.fact.from_scratch() ? from_scratch_key(job.question) : job_key(job.question);
}

}  // namespace cubind
