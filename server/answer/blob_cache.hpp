// The compressed cubins that were served last, in RAM. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "server/store/rows.hpp"

namespace cubind {

class Store;

/// A blob in RAM. A holder of a weak reference that serves it again without asking the cache calls
/// mark_used().
class CachedBlob : public Blob {
 public:
  explicit CachedBlob(Blob blob) : Blob(std::move(blob)) {}

  void mark_used() const {
    // Written only where it changes something: many threads serve the same blob.
    if (!used_.load(std::memory_order_relaxed)) {
      used_.store(true, std::memory_order_relaxed);
    }
  }

 private:
  friend class BlobCache;
  mutable std::atomic<bool> used_{true};  // since the cache last looked for room
};

/// Blobs that were not used since the cache last looked for room are dropped (second chance).
class BlobCache {
 public:
  BlobCache(Store& store, std::size_t max_bytes) : store_(store), max_bytes_(max_bytes) {}

  /// Null: not stored. Damaged bytes are removed from the store and are then not stored.
  std::shared_ptr<const CachedBlob> find(const Digest& cubin);

 private:
  using Entries = std::list<std::shared_ptr<const CachedBlob>>;

  std::shared_ptr<const CachedBlob> remembered(const Digest& cubin);
  std::shared_ptr<const CachedBlob> load(const Digest& cubin);
  void keep(std::shared_ptr<const CachedBlob> blob);
  void make_room();  // with mutex_ held

  Store& store_;
  const std::size_t max_bytes_;
  std::mutex mutex_;
  Entries entries_;                                       // guarded by mutex_; looked at from the end
  std::unordered_map<Digest, Entries::iterator> places_;  // guarded by mutex_
  std::size_t bytes_ = 0;                                 // guarded by mutex_
};

}  // namespace cubind
