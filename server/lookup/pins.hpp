// The generation that a training job pins with its first question: all of its ranks get the same answers,
// even if problems are tuned or imported later.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "server/lookup/index.hpp"

namespace cubind {

/// Thread-safe. Pins are in the store and outlive the daemon. The snapshots of the `capacity` jobs that asked
/// last are in RAM; others are read again.
class Pins {
 public:
  Pins(Store& store, const Index& index, std::size_t capacity = 64)
      : store_(store), index_(index), capacity_(capacity) {}

  /// The first call for a job pins the current generation, or the one that it names. If the store takes no
  /// writes, the pin lasts as long as its snapshot stays in RAM. Throws Error(FailedPrecondition) if the
  /// generation belongs to another store or differs from the pinned one, Error(NotFound) if it does not exist
  /// yet. `process` is the one that asks: a rank of the job.
  std::shared_ptr<const IndexSnapshot> snapshot(const std::string& job,
                                                const std::optional<Generation>& named = {},
                                                const std::string& process = "");
  /// How many processes of the job have asked, as long as its snapshot is in RAM; 0: it is not.
  std::uint32_t processes(const std::string& job) const;

 private:
  using Snapshot = std::shared_ptr<const IndexSnapshot>;
  struct Entry {
    std::string job;
    Snapshot snapshot;
    std::unordered_set<std::size_t> processes;  // hashes
  };
  using Entries = std::list<Entry>;

  Snapshot take(const std::string& job, const std::string& process);
  /// Returns the stored snapshot, which another thread may have added first.
  Snapshot keep(const std::string& job, Snapshot snapshot, const std::string& process);
  static void count(Entry& entry, const std::string& process);
  std::uint64_t pin(const std::string& job, std::uint64_t current);
  /// Another daemon on the database may have answered with a generation that the index has not read yet.
  Generation newest(const Generation& known, const Generation& named);

  Store& store_;
  const Index& index_;
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  Entries entries_;                                            // guarded by mutex_; most recently asked first
  std::unordered_map<std::string, Entries::iterator> by_job_;  // guarded by mutex_
};

}  // namespace cubind
