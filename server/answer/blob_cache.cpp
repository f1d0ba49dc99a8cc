#include "server/answer/blob_cache.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/store/store.hpp"

namespace cubind {

std::shared_ptr<const CachedBlob> BlobCache::find(const Digest& cubin) {
  if (auto blob = remembered(cubin)) {
    return blob;
  }
  auto loaded = load(cubin);
  if (loaded) {
    keep(loaded);
  }
  return loaded;
}

bool BlobCache::has(const Digest& cubin) const {
  const std::lock_guard lock(mutex_);
  return by_cubin_.contains(cubin);
}

std::shared_ptr<const CachedBlob> BlobCache::load(const Digest& cubin) {
  std::shared_ptr<const CachedBlob> loaded;
  try {
    store_.read([&](StoreReader& reader) {
      if (auto blob = reader.blob(cubin)) {
        loaded = std::make_shared<const CachedBlob>(std::move(*blob));
      }
    });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DataLoss) {
      throw;
    }
    log_error(std::string(error.what()) + ": it is dropped, and compiled again for the next question");
    store_.write([&](StoreWriter& writer) { writer.drop_damaged_blob(cubin); });
  }
  return loaded;
}

std::shared_ptr<const CachedBlob> BlobCache::remembered(const Digest& cubin) {
  const std::lock_guard lock(mutex_);
  const auto found = by_cubin_.find(cubin);
  if (found == by_cubin_.end()) {
    return nullptr;
  }
  (*found->second)->mark_used();
  return *found->second;
}

void BlobCache::keep(std::shared_ptr<const CachedBlob> blob) {
  const std::lock_guard lock(mutex_);
  if (by_cubin_.contains(blob->cubin)) {
    return;
  }
  if (blob->zstd.size() > max_bytes_) {
    used_.insert(blob->cubin);
    return;
  }
  bytes_ += blob->zstd.size();
  entries_.push_front(std::move(blob));
  by_cubin_[entries_.front()->cubin] = entries_.begin();
  make_room();
}

std::vector<Digest> BlobCache::take_used() {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries_) {
    if (entry->take(CachedBlob::kSinceTaken)) {
      used_.insert(entry->cubin);
    }
  }
  std::vector<Digest> used(used_.begin(), used_.end());
  used_.clear();
  return used;
}

void BlobCache::make_room() {
  // One round at most, even if others use entries meanwhile.
  std::size_t chances = entries_.size();
  while (bytes_ > max_bytes_) {
    if (chances > 0 && entries_.back()->take(CachedBlob::kSinceRoom)) {
      --chances;
      entries_.splice(entries_.begin(), entries_, std::prev(entries_.end()));
      continue;
    }
    if (entries_.back()->take(CachedBlob::kSinceTaken)) {
      used_.insert(entries_.back()->cubin);
    }
    bytes_ -= entries_.back()->zstd.size();
    by_cubin_.erase(entries_.back()->cubin);
    entries_.pop_back();
  }
}

}  // namespace cubind
