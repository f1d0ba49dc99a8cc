#include "server/answer/blob_cache.hpp"

#include "server/store/store.hpp"

namespace cubind {

std::shared_ptr<const Blob> BlobCache::find(const Digest& cubin) {
  if (auto blob = take(cubin)) {
    return blob;
  }
  std::shared_ptr<const Blob> loaded;
  store_.read([&](StoreReader& reader) {
    if (auto blob = reader.blob(cubin)) {
      loaded = std::make_shared<const Blob>(std::move(*blob));
    }
  });
  if (loaded) {
    keep(loaded);
  }
  return loaded;
}

std::shared_ptr<const Blob> BlobCache::take(const Digest& cubin) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(cubin);
  if (found == places_.end()) {
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front();
}

void BlobCache::keep(std::shared_ptr<const Blob> blob) {
  const std::lock_guard lock(mutex_);
  if (blob->zstd.size() > max_bytes_ || places_.contains(blob->cubin)) {
    return;
  }
  bytes_ += blob->zstd.size();
  entries_.push_front(std::move(blob));
  places_[entries_.front()->cubin] = entries_.begin();
  while (bytes_ > max_bytes_) {
    bytes_ -= entries_.back()->zstd.size();
    places_.erase(entries_.back()->cubin);
    entries_.pop_back();
  }
}

}  // namespace cubind
