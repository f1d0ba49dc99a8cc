#include "server/answer/blob_cache.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/store/store.hpp"

namespace cubind {

std::shared_ptr<const Blob> BlobCache::find(const Digest& cubin) {
  if (auto blob = remembered(cubin)) {
    return blob;
  }
  auto loaded = load(cubin);
  if (loaded) {
    keep(loaded);
  }
  return loaded;
}

std::shared_ptr<const Blob> BlobCache::load(const Digest& cubin) {
  std::shared_ptr<const Blob> loaded;
  try {
    store_.read([&](StoreReader& reader) {
      if (auto blob = reader.blob(cubin)) {
        loaded = std::make_shared<const Blob>(std::move(*blob));
      }
    });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DataLoss) {
      throw;
    }
    log_error(std::string(error.what()) + ": it is dropped and compiled again when it is asked for");
    store_.write([&](StoreWriter& writer) { writer.drop_damaged_blob(cubin); });
  }
  return loaded;
}

std::shared_ptr<const Blob> BlobCache::remembered(const Digest& cubin) {
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
