#include "server/service/reply_cache.hpp"

#include <functional>
#include <utility>

#include "server/service/context.hpp"

namespace cubind {

ReplyState reply_state(ServiceContext& context) {
  return {context.index.published(), context.kernels.published(), context.fleet.published(),
          context.artifacts.noted()};
}

ReplyCache::ReplyCache(std::size_t max_bytes, std::size_t parts)
    : max_bytes_(max_bytes / parts), parts_(parts) {}

std::optional<KnownReply> ReplyCache::find(std::string_view request, const ReplyState& state) {
  const std::size_t hash = std::hash<std::string_view>()(request);
  Part& part = part_of(hash);
  ReplyTable outdated;  // destroyed after the lock is given back
  const std::lock_guard lock(part.mutex);
  if (part.state != state) {
    std::swap(outdated, part.replies);
    part.state = state;
    return std::nullopt;
  }
  const ReplyTable::Entry* entry = part.replies.find(request, hash);
  if (!entry) {
    return std::nullopt;
  }
  KnownReply known{entry->head(), entry->cubin, entry->blob.lock(), entry->quality};
  if (known.blob) {
    known.blob->mark_used();
  }
  part.found += known.blob || !known.cubin ? 1 : 0;
  return known;
}

void ReplyCache::keep(std::string_view request, const ReplyState& state, const WireReply& reply,
                      const std::shared_ptr<const CachedBlob>& blob) {
  const std::size_t hash = std::hash<std::string_view>()(request);
  Part& part = part_of(hash);
  const std::lock_guard lock(part.mutex);
  if (part.state != state || ReplyTable::cost(request, reply) > max_bytes_) {
    return;
  }
  part.replies.put(request, hash, reply, blob);
  part.replies.shrink_to(max_bytes_);
}

std::uint64_t ReplyCache::found() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    sum += part.found;
  }
  return sum;
}

}  // namespace cubind
