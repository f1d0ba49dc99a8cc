#include "server/service/reply_table.hpp"

#include <cstring>
#include <utility>

namespace cubind {
namespace {

grpc::Slice in_one_piece(std::string_view request, const grpc::Slice& head) {
  grpc::Slice bytes(request.size() + head.size());
  auto* at = const_cast<std::uint8_t*>(bytes.begin());  // not shared yet
  std::memcpy(at, request.data(), request.size());
  std::memcpy(at + request.size(), head.begin(), head.size());
  return bytes;
}

}  // namespace

std::size_t ReplyTable::slot_of(std::string_view request, std::size_t hash) const {
  std::size_t slot = hash & (slots_.size() - 1);
  while (!is_free(slot) && (slots_[slot].hash != hash || slots_[slot].request() != request)) {
    slot = next(slot);
  }
  return slot;
}

ReplyTable::Entry* ReplyTable::find(std::string_view request, std::size_t hash) {
  if (slots_.empty()) {
    return nullptr;
  }
  Entry& entry = slots_[slot_of(request, hash)];
  if (entry.bytes.size() == 0) {
    return nullptr;
  }
  if (!entry.used) {
    entry.used = true;
  }
  return &entry;
}

void ReplyTable::put(std::string_view request, std::size_t hash, const WireReply& reply,
                     const std::shared_ptr<const CachedBlob>& blob) {
  if ((entries_ + 1) * 4 > slots_.size() * 3) {
    grow();
  }
  Entry& entry = slots_[slot_of(request, hash)];
  if (entry.bytes.size() != 0) {
    cost_ -= entry.cost();
  } else {
    ++entries_;
  }
  entry = {hash,       in_one_piece(request, reply.head),
           blob,       static_cast<std::uint32_t>(request.size()),
           true,       reply.quality,
           reply.cubin};
  cost_ += entry.cost();
}

void ReplyTable::grow() {
  std::vector<Entry> old(std::max(kFirstSlots, slots_.size() * 2));
  old.swap(slots_);
  for (Entry& entry : old) {
    if (entry.bytes.size() != 0) {
      const std::size_t slot = slot_of(entry.request(), entry.hash);
      slots_[slot] = std::move(entry);
    }
  }
}

void ReplyTable::shrink_to(std::size_t max_cost) {
  while (cost_ > max_cost) {
    hand_ &= slots_.size() - 1;
    if (is_free(hand_) || std::exchange(slots_[hand_].used, false)) {
      hand_ = next(hand_);
    } else {
      erase(hand_);  // another may have moved here
    }
  }
}

/// Those behind it that would no longer be found move up.
void ReplyTable::erase(std::size_t slot) {
  cost_ -= slots_[slot].cost();
  --entries_;
  std::size_t gap = slot;
  for (std::size_t at = next(gap); !is_free(at); at = next(at)) {
    const std::size_t mask = slots_.size() - 1;
    const std::size_t home = slots_[at].hash & mask;
    if (((at - home) & mask) >= ((at - gap) & mask)) {
      slots_[gap] = std::move(slots_[at]);
      gap = at;
    }
  }
  slots_[gap] = Entry();
}

}  // namespace cubind
