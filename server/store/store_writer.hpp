// The changes of the store, on its one writing connection within one transaction. Reads see the writes before
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/store/store_reader.hpp"

namespace cubind {

namespace store {
class Statement;
}

inline constexpr std::uint32_t kMaxWants = 10'000;
inline constexpr std::uint32_t kMaxEndedJobs = 10'000;

/// Throws as Store says; an error of one change undoes the whole transaction.
class StoreWriter : public StoreReader {
 public:
  /// `now` is the date that new rows get.
  StoreWriter(store::Connection& database, store::DamagedRows& damaged, std::string now)
      : StoreReader(database, damaged), now_(std::move(now)) {}

  /// The next generation: the first call within a transaction raises the number, later ones return the same.
  std::uint64_t next_generation();

  /// Known digests are left as they are, unless their bytes are damaged: these are replaced. Throws
  /// InvalidArgument where the bytes do not decompress to `cubin`.
  void put_blob(const Blob& blob);
  /// Removes the bytes if they no longer have their digest; the artifact that names them is then compiled
  /// again.
  void drop_damaged_blob(const Digest& cubin);
  /// The cubins were used now.
  void note_used(std::span<const Digest> cubins);
  /// Removes cubins, the ones used longest ago first, until all take `max_bytes` at most: up to 256, and none
  /// that a current record or one of a pinned generation was measured with. Gives their number.
  std::uint64_t evict_cubins(std::uint64_t max_bytes);
  /// A known key keeps its row (compilation is deterministic), unless it is damaged. The blob may come later.
  void put_artifact(const ArtifactRow& artifact);
  /// If it still names that cubin.
  void drop_artifact(const Digest& key, const Digest& cubin);
  void put_device_class(const DeviceClass& device);  // known ones stay, damaged ones are mended
  /// Inserts or updates the kernel's row of the trial; false if nothing was stored: out of memory is not a
  /// property of a configuration, and a known imported trial stays unchanged.
  bool put_trial(const TrialRow& trial);
  /// Drops the kernel's row of the trial, as if it had not been tried, and lets the current records of its
  /// problem no longer say that their search is done. Samples and passed verifications stay while another
  /// kernel has the trial.
  void forget_trial(const TrialRow& trial);
  /// False where it is stored already and not damaged. Throws InvalidArgument where the trial is not stored.
  bool put_block(const BlockRow& block);
  /// A failed verification stays failed in its series.
  void put_verification(const VerificationRow& verification);
  /// Appends in next_generation() and ends the row that it replaces. False: not stored, because there is a
  /// better row (an uncontended one for a provisional one) or the same imported row is known. Either way
  /// the question is wanted no longer.
  /// A winner with the cubin of the row that it replaces keeps that row's comparisons with libraries.
  bool put_record(const RecordRow& record);
  /// The same unless the question has a current record of whatever driver, toolchain and evidence: of several
  /// writers the first one's stays.
  bool put_new_record(const RecordRow& record);
  /// Keeps a comparison with a current record, within its generation. False: the record is current no longer.
  bool put_comparison(std::int64_t record, const LibraryComparison& comparison);

  /// Inserts or replaces. `owner`: the daemon that has leased it; empty: none. Gives the number of the row's
  /// change (SharedJob); 0 where one daemon alone has the store.
  std::uint64_t put_job(const JobRow& job, const std::string& owner = {});
  /// Each holds the open job's row for this transaction, and throws Aborted where another daemon has changed
  /// it. Nothing happens where one daemon alone has the store.
  /// The row is as it was at that change, and no living daemon but `daemon` has leased it.
  void claim_job(const std::string& id, std::uint64_t change, const std::string& daemon);
  /// The row is as it was at that change.
  void require_unchanged(const std::string& id, std::uint64_t change);
  /// The lease with that fence is the job's last one: stands before each write of what it has measured.
  void require_fence(const std::string& id, std::uint64_t fence);
  /// Forgets jobs that ended before that date, and of the others all but the last kMaxEndedJobs. A job whose
  /// record holds stays. Device classes go that no record, no trial and no open job has.
  void forget_jobs(const std::string& ended_before);
  /// Ends damaged open jobs as failed, with the damage as their error: no agent can continue them, and they
  /// block the next job with their key.
  void fail_damaged_jobs();
  /// Above kMaxWants questions the one least asked for, of these the one longest ago, makes room.
  void count_want(const RecordQuestion& question, const std::string& now);
  void drop_want(const RecordQuestion& question);
  /// The first pin stays: returns the job's generation.
  std::uint64_t pin_generation(const std::string& job, std::uint64_t generation);
  /// Returns the sum.
  Savings add_savings(const Savings& more);

 private:
  template <typename Row, typename... Others>
  void put_row(const std::string& statement, const Row& row, const Others&... others);
  void require_trial(const Digest& key, Origin origin);
  void drop_blob(const Digest& cubin);
  bool insert_block(const BlockRow& block);
  bool is_damaged_class(const Digest& digest);
  struct Rival {
    std::int64_t id = 0;
    std::optional<RecordRow> record;  // absent: it is damaged
  };
  /// The current records that may have to make room for this one.
  std::vector<Rival> rivals(const RecordRow& record, const Digest& key);
  void end_record(std::int64_t id);
  void set_fact(const RecordRow& record);
  void settle_out_of_memory(const Digest& key);
  static void require_row(store::Statement& query, const std::string& id);

  std::string now_;
  bool generation_raised_ = false;
};

}  // namespace cubind
