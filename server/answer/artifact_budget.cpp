#include "server/answer/artifact_budget.hpp"

#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"

namespace cubind {

void ArtifactBudget::keep() {
  if (store_.read_only_reason()) {
    return;
  }
  const std::vector<Digest> used = blobs_.take_used();
  std::uint64_t bytes = 0;
  store_.read([&](StoreReader& reader) { bytes = reader.counts().cubin_bytes; });
  const bool is_over = max_bytes_ > 0 && bytes > max_bytes_;
  if (used.empty() && !is_over) {
    return;
  }
  store_.write([&](StoreWriter& writer) { writer.note_used(used); });
  std::uint64_t evicted = 0;
  for (bool goes_on = is_over; goes_on;) {
    std::uint64_t more = 0;
    store_.write([&](StoreWriter& writer) {
      more = writer.evict_cubins(max_bytes_);
      bytes = writer.counts().cubin_bytes;
    });
    evicted += more;
    goes_on = more > 0 && bytes > max_bytes_;
  }
  evicted_ += evicted;
  if (evicted > 0) {
    log_info("removed " + std::to_string(evicted) + " cubins that were used longest ago (--artifact-bytes " +
             std::to_string(max_bytes_) + ")");
  }
  if (bytes > max_bytes_ && is_over) {
    warn_of_needs(bytes);
  }
}

void ArtifactBudget::warn_of_needs(std::uint64_t bytes) {
  if (!std::exchange(warned_, true)) {
    log_warning("the cubins that records need take " + std::to_string(bytes) +
                " bytes, more than --artifact-bytes " + std::to_string(max_bytes_) + ": they stay");
  }
}

}  // namespace cubind
