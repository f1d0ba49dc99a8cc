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
  /// yet.
  std::shared_ptr<const IndexSnapshot> snapshot(const std::string& job,
                                                const std::optional<Generation>& named = {});

 private:
  using Snapshot = std::shared_ptr<const IndexSnapshot>;
  using Entries = std::list<std::pair<std::string, Snapshot>>;

  Snapshot take(const std::string& job);
  /// Returns the stored snapshot, which another thread may have added first.
  Snapshot keep(const std::string& job, Snapshot snapshot);
  std::uint64_t pin(const std::string& job, std::uint64_t current);
  /// Another daemon on the database may have answered with a generation that the index has not read yet.
  Generation newest(const Generation& known, const Generation& named);

  Store& store_;
  const Index& index_;
  const std::size_t capacity_;
  std::mutex mutex_;
  Entries entries_;                                            // guarded by mutex_; most recently asked first
  std::unordered_map<std::string, Entries::iterator> by_job_;  // guarded by mutex_
};

}  // namespace cubind
