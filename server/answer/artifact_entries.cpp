#include "server/answer/artifact_entries.hpp"

#include "base/error.hpp"
#include "base/zstd.hpp"
#include "schemas/limits.hpp"

namespace cubind {
namespace {

/// About 1 KiB each. A daemon that serves more of them reads some again.
constexpr std::size_t kMaxKnown = 8192;

std::string bytes_of_blob(const std::shared_ptr<const CachedBlob>& blob) {
  try {
    return blob ? zstd_decompress(blob->zstd, kMaxCubinBytes) : "";
  } catch (const Error&) {
    return "";  // the client that loads the cubin reports the damage
  }
}

}  // namespace

std::shared_ptr<const CompiledEntries> ArtifactEntries::of(const ArtifactRow& artifact) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(artifact.key.digest);
    if (found != known_.end() && found->second.cubin == artifact.cubin) {
      return found->second.entries;
    }
  }
  const auto blob = blobs_.find(artifact.cubin);
  auto entries = std::make_shared<const CompiledEntries>(
      compiled_entries(bytes_of_blob(blob), artifact.entries, artifact.entry_symbols));
  if (blob) {
    const std::lock_guard lock(mutex_);
    if (known_.size() >= kMaxKnown) {
      known_.clear();
    }
    known_.insert_or_assign(artifact.key.digest, Known{artifact.cubin, entries});
  }
  return entries;
}

}  // namespace cubind
