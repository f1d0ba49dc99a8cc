// The one database of a daemon: artifacts, trials with their samples, records, jobs.
//
// Thread rule: a Store is used from any thread. Writes run on its one writer thread, one transaction at a
// time; reads run on the calling thread with a connection of their own and see the last committed state. A
// reader or writer object is used only within the function that it was handed to.
//
// Errors: DataLoss where a row no longer has its digest or its full key, or a value that does not read back:
// it is never returned, and where several rows are asked for the others are (damaged_rows()).
// ResourceExhausted where the disk is full and Unavailable where it fails (the store is then read-only until
// a write succeeds again), FailedPrecondition from open() (another daemon has the store, a network file
// system, a newer schema).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/store/rows.hpp"

namespace cubind {

struct StoreOptions {
  std::filesystem::path path;   // of the database file; its folder is made
  std::uint32_t max_pages = 0;  // of 4 KiB; 0: no limit
  unsigned readers = 4;         // connections kept for reading
  // Of the first write for another process's lock; those after it hardly wait until one succeeds.
  std::chrono::milliseconds patience{5000};
};

/// Trials of one tuning question: what a lease is granted with.
struct TrialGroup {
  std::string kernel;
  Problem problem;
  Digest device_class;
  Policy policy;
  std::string driver_branch;
};

inline constexpr std::uint32_t kMaxWants = 10'000;

struct RecordFilter {
  std::vector<std::string> kernels;       // empty: all
  std::optional<Digest> device_class;     // absent: all
  std::optional<std::string> name_space;  // absent: all
  bool current_only = true;
};

struct StoreCounts {
  std::uint64_t records = 0;  // current
  std::uint64_t artifacts = 0;
  std::uint64_t trials = 0;
  std::uint64_t blocks = 0;
  std::uint64_t wants = 0;
  std::uint64_t file_bytes = 0;
};

/// Every method returns rows in a fixed order (by key), so that what is built from them is deterministic.
class StoreReader {
 public:
  virtual ~StoreReader() = default;

  virtual Generation generation() = 0;
  virtual StoreCounts counts() = 0;

  /// Absent: not stored. The full key is compared, the blob's digest is checked.
  virtual std::optional<ArtifactRow> artifact(const Key& key) = 0;
  virtual std::optional<ArtifactRow> artifact_by_cubin(const Digest& cubin) = 0;
  virtual std::vector<ToolchainIdentity> toolchains(const std::string& kernel) = 0;  // newest first
  virtual bool has_blob(const Digest& cubin) = 0;
  virtual std::optional<Blob> blob(const Digest& cubin) = 0;

  virtual std::vector<DeviceClass> device_classes() = 0;

  virtual std::vector<RecordRow> records(const RecordFilter& filter) = 0;
  /// The current ones of one question, of every driver branch, toolchain and evidence.
  virtual std::vector<RecordRow> records_of(const RecordQuestion& question) = 0;
  /// Those that held in this generation, of all questions.
  virtual std::vector<RecordRow> records_at(std::uint64_t generation) = 0;

  virtual std::optional<TrialRow> trial(const Key& key) = 0;               // a worker's
  virtual std::optional<TrialRow> trial_by_digest(const Digest& key) = 0;  // likewise
  virtual std::vector<TrialRow> trials(const TrialGroup& group) = 0;       // workers' alone
  virtual std::vector<TrialRow> all_trials(
      const RecordFilter& filter) = 0;  // both origins; name_space does not apply
  /// Blocks by (stage, index) and verifications of one trial, of its newest series or the given one.
  virtual std::vector<BlockRow> blocks(const TrialRow& trial) = 0;
  virtual std::vector<VerificationRow> verifications(const TrialRow& trial) = 0;
  /// Artifacts that the group's trials name, each once.
  virtual std::vector<ArtifactRow> artifacts_of(const TrialGroup& group) = 0;

  virtual std::vector<JobRow> jobs(bool include_ended) = 0;  // oldest first
  /// Those that have failed for the lack of memory, of each key the latest job alone.
  virtual std::vector<JobRow> out_of_memory_jobs() = 0;
  /// Of the trials that jobs of this question share with those of other numerics and namespaces.
  virtual std::uint32_t last_series(const RecordQuestion& question) = 0;
  virtual std::vector<WantRow> wants() = 0;  // most asked first
  /// Of a training job; absent: it has pinned none.
  virtual std::optional<std::uint64_t> pinned_generation(const std::string& job) = 0;
};

class StoreWriter : public StoreReader {
 public:
  /// The next generation: the first call within a transaction raises the number, later ones return the same.
  virtual std::uint64_t next_generation() = 0;

  /// Known digests are left as they are, unless their bytes are damaged: these are replaced. Throws
  /// InvalidArgument where the bytes do not decompress to `cubin`.
  virtual void put_blob(const Blob& blob) = 0;
  /// Removes the bytes if they no longer have their digest; the artifact that names them is then compiled
  /// again.
  virtual void drop_damaged_blob(const Digest& cubin) = 0;
  /// A known key keeps its row (compilation is deterministic; the first one stands), unless it is damaged.
  /// The blob may come later.
  virtual void put_artifact(const ArtifactRow& artifact) = 0;
  virtual void put_device_class(const DeviceClass& device) = 0;  // known ones stay, damaged ones are mended
  /// Inserts or updates; false where nothing was stored: out of memory is no property of a configuration, and
  /// an imported trial that is known stays as it is.
  virtual bool put_trial(const TrialRow& trial) = 0;
  /// False where it is stored already and not damaged. Throws InvalidArgument where the trial is not stored.
  virtual bool put_block(const BlockRow& block) = 0;
  virtual void put_verification(const VerificationRow& verification) = 0;
  /// Appends in next_generation() and ends the row that it replaces. False: not stored, because a better row
  /// stands (a provisional one beside an uncontended one) or the same imported row is known. Either way the
  /// question is wanted no longer.
  virtual bool put_record(const RecordRow& record) = 0;

  virtual void put_job(const JobRow& job) = 0;  // inserts or replaces
  /// Ends the open jobs that are damaged as failed, with what is damaged as their error: nobody can go on
  /// with them, and they keep the next job with their key away.
  virtual void fail_damaged_jobs() = 0;
  /// Above kMaxWants questions the one least asked for, of these the one longest ago, makes room.
  virtual void count_want(const RecordQuestion& question, const std::string& now) = 0;
  virtual void drop_want(const RecordQuestion& question) = 0;
  /// The first pin stands: returns the job's generation.
  virtual std::uint64_t pin_generation(const std::string& job, std::uint64_t generation) = 0;
};

class Store {
 public:
  static std::unique_ptr<Store> open(const StoreOptions& options);
  virtual ~Store() = default;

  virtual const std::filesystem::path& path() const = 0;

  /// Runs `body` with a reading connection; all of its reads see one committed state.
  virtual void read(const std::function<void(StoreReader&)>& body) = 0;
  /// Runs `body` in one transaction on the writer thread and waits until it is committed. What `body` throws
  /// rolls back and is thrown here.
  virtual void write(const std::function<void(StoreWriter&)>& body) = 0;
  /// The same without waiting; a failure is logged.
  virtual void write_behind(std::function<void(StoreWriter&)> body) = 0;

  /// Why the store takes no writes now; absent: it does. Ends with the first write that succeeds.
  virtual std::optional<std::string> read_only_reason() const = 0;
  /// Rows that were left out of what was read since the store was opened, because a value in them is damaged.
  virtual std::uint64_t damaged_rows() const = 0;
  /// Tries a write if the store is read-only; true if it takes writes now.
  virtual bool try_recover() = 0;
};

}  // namespace cubind
