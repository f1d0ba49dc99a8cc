// Bounds the size of the cubins in the store: the least recently used ones are removed.
#pragma once

#include <atomic>
#include <cstdint>

#include "server/answer/blob_cache.hpp"
#include "server/store/store.hpp"

namespace cubind {

/// Never removes the measured cubins of current records and of generations that training jobs have pinned.
/// Any other cubin is compiled again on request.
class ArtifactBudget {
 public:
  /// `max_bytes`: of compressed cubins; 0: no limit.
  ArtifactBudget(Store& store, BlobCache& blobs, std::uint64_t max_bytes)
      : store_(store), blobs_(blobs), max_bytes_(max_bytes) {}

  /// Stores which cubins were used since the last call, then removes cubins, a limited number per
  /// transaction. One thread at a time. Throws the store's errors.
  void keep();

  std::uint64_t max_bytes() const { return max_bytes_; }
  std::uint64_t evicted() const { return evicted_; }  // any thread may call it

 private:
  void warn_of_needs(std::uint64_t bytes);

  Store& store_;
  BlobCache& blobs_;
  const std::uint64_t max_bytes_;
  std::atomic<std::uint64_t> evicted_{0};
  bool warned_ = false;
};

}  // namespace cubind
