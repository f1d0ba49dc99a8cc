// How much room the cubins may take in the store: those used longest ago make room.
#pragma once

#include <atomic>
#include <cstdint>

#include "server/answer/blob_cache.hpp"
#include "server/store/store.hpp"

namespace cubind {

/// Never removed: the measured cubin of a current record, or of one in a generation that a training job has
/// pinned. Whatever else goes is compiled again when it is asked for.
class ArtifactBudget {
 public:
  /// `max_bytes` of compressed cubins; 0: no limit.
  ArtifactBudget(Store& store, BlobCache& blobs, std::uint64_t max_bytes)
      : store_(store), blobs_(blobs), max_bytes_(max_bytes) {}

  /// Writes down which cubins were used since the last call, then makes room, a limited number in one
  /// transaction. One thread at a time. Throws the store's errors.
  void keep();

  std::uint64_t max_bytes() const { return max_bytes_; }
  std::uint64_t evicted() const { return evicted_; }  // from any thread

 private:
  void warn_of_needs(std::uint64_t bytes);

  Store& store_;
  BlobCache& blobs_;
  const std::uint64_t max_bytes_;
  std::atomic<std::uint64_t> evicted_{0};
  bool warned_ = false;
};

}  // namespace cubind
