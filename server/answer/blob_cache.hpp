// The compressed cubins that were served last, in RAM. Thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "server/store/rows.hpp"

namespace cubind {

class Store;

class BlobCache {
 public:
  BlobCache(Store& store, std::size_t max_bytes) : store_(store), max_bytes_(max_bytes) {}

  /// Null: not stored. Damaged bytes are removed from the store and are then not stored.
  std::shared_ptr<const Blob> find(const Digest& cubin);
  /// Null: not in RAM. Reads nothing from the store.
  std::shared_ptr<const Blob> remembered(const Digest& cubin);

 private:
  using Entries = std::list<std::shared_ptr<const Blob>>;

  std::shared_ptr<const Blob> load(const Digest& cubin);
  void keep(std::shared_ptr<const Blob> blob);

  Store& store_;
  const std::size_t max_bytes_;
  std::mutex mutex_;
  Entries entries_;                                       // guarded by mutex_; used last first
  std::unordered_map<Digest, Entries::iterator> places_;  // guarded by mutex_
  std::size_t bytes_ = 0;                                 // guarded by mutex_
};

}  // namespace cubind
