// What a reader or writer of the store does, on one connection within one transaction.
#pragma once

#include <functional>
#include <string>

#include "server/store/damaged_rows.hpp"
#include "server/store/database.hpp"
#include "server/store/store.hpp"

namespace cubind::store {

class Session final : public StoreWriter {
 public:
  /// `now` is the date that new rows get; lists leave the rows out that are damaged, and note them.
  Session(Database& database, DamagedRows& damaged, std::string now)
      : database_(database), damaged_(damaged), now_(std::move(now)) {}

  Generation generation() override;
  StoreCounts counts() override;
  std::optional<ArtifactRow> artifact(const Key& key) override;
  std::optional<ArtifactRow> artifact_by_cubin(const Digest& cubin) override;
  std::vector<ToolchainIdentity> toolchains(const std::string& kernel) override;
  bool has_blob(const Digest& cubin) override;
  std::optional<Blob> blob(const Digest& cubin) override;
  std::vector<DeviceClass> device_classes() override;
  std::vector<RecordRow> records(const RecordFilter& filter) override;
  std::vector<RecordRow> records_of(const RecordQuestion& question) override;
  std::vector<RecordRow> records_at(std::uint64_t generation) override;
  std::optional<TrialRow> trial(const Key& key) override;
  std::optional<TrialRow> trial_by_digest(const Digest& key) override;
  std::vector<TrialRow> trials(const TrialGroup& group) override;
  std::vector<TrialRow> all_trials(const RecordFilter& filter) override;
  std::vector<BlockRow> blocks(const TrialRow& trial) override;
  std::vector<VerificationRow> verifications(const TrialRow& trial) override;
  std::vector<ArtifactRow> artifacts_of(const TrialGroup& group) override;
  std::vector<JobRow> jobs(bool include_ended) override;
  std::vector<JobRow> out_of_memory_jobs() override;
  std::uint32_t last_series(const RecordQuestion& question) override;
  std::vector<WantRow> wants() override;
  std::optional<std::uint64_t> pinned_generation(const std::string& job) override;

  std::uint64_t next_generation() override;
  void put_blob(const Blob& blob) override;
  void drop_damaged_blob(const Digest& cubin) override;
  void put_artifact(const ArtifactRow& artifact) override;
  void put_device_class(const DeviceClass& device) override;
  bool put_trial(const TrialRow& trial) override;
  bool put_block(const BlockRow& block) override;
  void put_verification(const VerificationRow& verification) override;
  bool put_record(const RecordRow& record) override;
  void put_job(const JobRow& job) override;
  void fail_damaged_jobs() override;
  void count_want(const RecordQuestion& question, const std::string& now) override;
  void drop_want(const RecordQuestion& question) override;
  std::uint64_t pin_generation(const std::string& job, std::uint64_t generation) override;

 private:
  struct TrialIdentity {
    std::int64_t id = 0;
    std::string full_key;
    std::uint32_t fault_count = 0;
  };
  std::optional<TrialIdentity> find_trial(const Digest& key, Origin origin);
  std::int64_t trial_id(const Digest& key, Origin origin);
  bool insert_block(const BlockRow& block);
  bool is_damaged_class(const Digest& digest);
  void insert_record(const RecordRow& record, const Key& key);
  struct Rival {
    std::int64_t id = 0;
    std::optional<RecordRow> record;  // absent: it is damaged
  };
  std::vector<Rival> rivals(const RecordRow& record, const Digest& key);
  void end_record(std::int64_t id);

  Database& database_;
  DamagedRows& damaged_;
  std::string now_;
  bool generation_raised_ = false;
};

/// Throws DataLoss: the stored full key is not the one that was asked for (a collision or a damaged row).
void require_full_key(const Key& key, const std::string& stored, std::string_view what);

}  // namespace cubind::store
