#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "server/answer/blob_cache.hpp"
#include "tuner/spec/entry_faults.hpp"

namespace cubind {

/// The facts about entries that their cubins contain. Each cubin is read once; the facts stay in RAM.
/// Thread-safe.
class ArtifactEntries {
 public:
  explicit ArtifactEntries(BlobCache& blobs) : blobs_(blobs) {}

  /// If the cubin is lost or cannot be read, only the facts that the symbols give.
  std::shared_ptr<const CompiledEntries> of(const ArtifactRow& artifact);

 private:
  struct Known {
    Digest cubin;
    std::shared_ptr<const CompiledEntries> entries;
  };

  BlobCache& blobs_;
  std::mutex mutex_;
  std::unordered_map<Digest, Known> known_;  // guarded by mutex_; by artifact key
};

}  // namespace cubind
