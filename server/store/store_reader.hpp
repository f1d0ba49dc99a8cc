// The queries of the store, on one connection within one transaction. An object is used only within the
// function that it was handed to (Store::read, Store::write).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "server/store/rows.hpp"

namespace cubind {

namespace store {
class Connection;
class DamagedRows;
class Statement;
}  // namespace store

/// Trials of one tuning question: what a lease is granted with.
struct TrialGroup {
  std::string kernel;
  /// source_digest() of the kernel, by which other kernels' trials are found; zero: its own alone.
  Digest source;
  Problem problem;
  Digest device_class;
  Policy policy;
  std::string driver_branch;
};

/// Trials that failed: what a search does not try again.
struct FaultFilter {
  Digest device_class;
  std::string kernel = {};              // empty: every kernel
  std::vector<Problem> problems = {};   // empty: every problem
  std::vector<NamedValue> values = {};  // of tunables; empty: every configuration
};

/// Which records a list or an export has.
struct RecordFilter {
  std::vector<std::string> kernels;       // empty: all
  std::optional<Digest> device_class;     // absent: all
  std::optional<std::string> name_space;  // absent: all
  bool current_only = true;
};

/// Where a job stands among the others.
struct JobAge {
  std::string created_at;  // empty: before all others
  std::string id;
};

struct JobPage {
  std::vector<JobRow> jobs;
  std::optional<JobAge> last;  // of the page, a damaged row too; absent: the page is empty
};

/// The figures of the status.
struct StoreCounts {
  std::uint64_t records = 0;  // current
  std::uint64_t artifacts = 0;
  std::uint64_t trials = 0;
  std::uint64_t wants = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t cubin_bytes = 0;  // compressed
};

/// Every method returns rows in a fixed order (by key), so that everything built from them is deterministic.
class StoreReader {
 public:
  friend class StoreCopy;

  /// Lists leave the rows out that are damaged, and note them.
  StoreReader(store::Connection& database, store::DamagedRows& damaged)
      : database_(database), damaged_(damaged) {}

  Generation generation();
  StoreCounts counts();

  /// Absent: not stored. The full key is compared, the blob's digest is checked.
  std::optional<ArtifactRow> artifact(const Key& key);
  std::optional<ArtifactRow> artifact_by_cubin(const Digest& cubin);
  std::vector<ToolchainIdentity> toolchains(const std::string& kernel);  // newest first
  bool has_blob(const Digest& cubin);
  std::optional<Blob> blob(const Digest& cubin);

  /// The device classes by digest.
  std::map<Digest, DeviceClass> device_classes();

  std::vector<RecordRow> records(const RecordFilter& filter);
  /// Those that others have replaced, of a kernel or of all (""), stored after the one with the id: the first
  /// `most`.
  std::vector<RecordRow> replaced_after(std::int64_t id, const std::string& kernel, std::uint64_t most);
  /// The current ones of one question, of every driver branch, toolchain and evidence.
  std::vector<RecordRow> records_of(const RecordQuestion& question);
  /// Those that held in this generation, of all questions.
  std::vector<RecordRow> records_at(std::uint64_t generation);

  std::optional<TrialRow> trial(const Digest& key, const std::string& kernel);  // a worker's
  std::vector<TrialRow> trials(const TrialGroup& group);         // workers', of the kernel alone
  std::vector<TrialRow> all_trials(const RecordFilter& filter);  // both origins; name_space does not apply
  /// Workers' trials that neither were correct nor stayed unverified, by kernel, problem and key.
  std::vector<TrialRow> faults(const FaultFilter& filter);
  /// Blocks by (stage, index) and verifications of one trial, of its newest series or the given one; those of
  /// the trial that was measured for it, if another one was.
  std::vector<BlockRow> blocks(const TrialRow& trial);
  std::vector<VerificationRow> verifications(const TrialRow& trial);
  /// Those of the group's trials in the series, whatever kernels they were made for, by trial and then as
  /// above.
  std::vector<BlockRow> blocks_of(const TrialGroup& group, std::uint32_t series);
  std::vector<VerificationRow> verifications_of(const TrialGroup& group, std::uint32_t series);
  /// Configurations of the series' trials of the group that were screened and did not fail: at most `most`,
  /// the least mean of the screening's samples first.
  std::vector<Configuration> fastest_screened(const TrialGroup& group, std::uint32_t series,
                                              std::size_t most);
  /// Keys of the artifacts that the groups' trials name, of whatever kernel, whether they are stored or did
  /// not compile.
  std::set<Digest> artifact_keys_of(std::span<const TrialGroup> groups);
  /// Those of them that are stored, each once.
  std::vector<ArtifactRow> artifacts_of(std::span<const TrialGroup> groups);

  /// Of a database that several daemons may use: the jobs whose rows have changed after that number, oldest
  /// change first, and with `all_open` the other open ones. Empty where one daemon alone has the store.
  std::vector<SharedJob> jobs_since(std::uint64_t change, bool all_open);
  std::uint64_t last_job_change();  // 0: there are none
  std::optional<SharedJob> open_job(const Digest& key);
  /// The latest with that key that is done, if its row has changed after that number.
  std::optional<SharedJob> job_done_since(const Digest& key, std::uint64_t change);
  /// The same of records; 0: there are none, or one daemon alone has the store.
  std::vector<RecordRow> records_since(std::uint64_t change);
  std::uint64_t last_record_change();

  std::optional<JobRow> job(const std::string& id);
  std::vector<JobRow> open_jobs();   // oldest first
  std::vector<JobRow> ended_jobs();  // oldest first
  /// The next `limit` jobs by age, oldest first, from behind that one on.
  JobPage jobs_after(const JobAge& age, std::size_t limit);
  /// The jobs that failed because memory was short, for each key only the latest.
  std::vector<JobRow> out_of_memory_jobs();
  /// The series of the trials that jobs of this question share with those of other numerics, namespaces and
  /// kernels. `source`: source_digest() of the kernel.
  std::uint32_t last_series(const RecordQuestion& question, const Digest& source);
  std::vector<WantRow> wants();  // most asked first
  /// The generation that a training job has pinned; absent: none.
  std::optional<std::uint64_t> pinned_generation(const std::string& job);
  std::vector<PinRow> pins(std::uint64_t most);  // newest first
  Savings savings();

 protected:
  bool is_shared() const;
  /// Those that are not damaged.
  template <typename Row>
  std::vector<Row> read_rows(store::Statement& query);

  store::Connection& database_;
  store::DamagedRows& damaged_;
};

}  // namespace cubind
