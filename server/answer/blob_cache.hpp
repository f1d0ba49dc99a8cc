// The most recently served compressed cubins, in RAM. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/store/rows.hpp"

namespace cubind {

class Store;

/// A blob in RAM. A holder of a weak reference that serves the blob again without asking the cache must call
/// mark_used().
class CachedBlob : public Blob {
 public:
  explicit CachedBlob(Blob blob) : Blob(std::move(blob)) {}

  void mark_used() const {
    // Written only if the value changes, because many threads serve the same blob.
    if (uses_.load(std::memory_order_relaxed) != kAll) {
      uses_.store(kAll, std::memory_order_relaxed);
    }
  }

 private:
  friend class BlobCache;
  static constexpr unsigned kSinceRoom = 1, kSinceTaken = 2, kAll = 3;

  /// Whether the blob was used since the last call with the same flag.
  bool take(unsigned since) const { return (uses_.fetch_and(~since) & since) != 0; }

  mutable std::atomic<unsigned> uses_{kAll};
};

/// To make room, drops blobs that were not used since it last made room (second chance).
class BlobCache {
 public:
  BlobCache(Store& store, std::size_t max_bytes) : store_(store), max_bytes_(max_bytes) {}

  /// Null if not stored. Damaged bytes are removed from the store and count as not stored.
  std::shared_ptr<const CachedBlob> find(const Digest& cubin);
  /// Whether find() needs no store. Does not count as a use of the cubin.
  bool has(const Digest& cubin) const;

  /// The different cubins that were used since the last call.
  std::vector<Digest> take_used();

 private:
  using Entries = std::list<std::shared_ptr<const CachedBlob>>;

  std::shared_ptr<const CachedBlob> remembered(const Digest& cubin);
  std::shared_ptr<const CachedBlob> load(const Digest& cubin);
  void keep(std::shared_ptr<const CachedBlob> blob);
  void make_room();  // with mutex_ held

  Store& store_;
  const std::size_t max_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;                                         // guarded by mutex_; searched from the end
  std::unordered_map<Digest, Entries::iterator> by_cubin_;  // guarded by mutex_
  std::size_t bytes_ = 0;                                   // guarded by mutex_
  std::set<Digest>
      used_;  // of those that made room for others or are too large for the cache. Guarded by mutex_
};

}  // namespace cubind
