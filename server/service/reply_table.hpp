// A hash table of replies by the bytes of their requests, made for many more replies than a processor's
// caches hold: a look at one costs a line of the table, and the piece of memory with the request and the
// reply's head, which is sent anyway. Lists and maps of nodes cost a miss a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "server/answer/blob_cache.hpp"
#include "server/service/wire_reply.hpp"

namespace cubind {

/// Not thread-safe. Open addressing with linear probing; a reply that was found recently gets a second chance
/// when room is made.
class ReplyTable {
 public:
  /// Its first 64 bytes, one line of the processor's caches, are read to find it.
  struct alignas(64) Entry {
    std::size_t hash = 0;
    grpc::Slice bytes;  // the request, then the reply's head; empty: the slot is free
    std::weak_ptr<const CachedBlob> blob;
    std::uint32_t request_bytes = 0;
    bool used = false;  // since room was last made
    AnswerQuality quality;
    std::optional<CubinAtEnd> cubin;

    std::string_view request() const { return as_text(bytes).substr(0, request_bytes); }
    grpc::Slice head() const { return bytes.sub(request_bytes, bytes.size()); }
    std::size_t cost() const { return bytes.size() + kOverhead; }
  };

  /// `hash` is std::hash of the request. Null: not there. Good until the table is changed.
  Entry* find(std::string_view request, std::size_t hash);
  /// Replaces an earlier reply to the request.
  void put(std::string_view request, std::size_t hash, const WireReply& reply,
           const std::shared_ptr<const CachedBlob>& blob);
  /// Until the replies cost no more than this.
  void shrink_to(std::size_t max_cost);

  /// The size of a reply, in bytes.
  static std::size_t cost(std::string_view request, const WireReply& reply) {
    return request.size() + reply.head.size() + kOverhead;
  }

 private:
  static constexpr std::size_t kOverhead = 256;  // the slot, with those that are kept free
  static constexpr std::size_t kFirstSlots = 64;

  std::size_t slot_of(std::string_view request, std::size_t hash) const;  // its own, or the free one
  std::size_t next(std::size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  bool is_free(std::size_t slot) const { return slots_[slot].bytes.size() == 0; }
  void grow();
  void erase(std::size_t slot);

  std::vector<Entry> slots_;  // none, or a power of two, a quarter of them free
  std::size_t entries_ = 0;
  std::size_t cost_ = 0;
  std::size_t hand_ = 0;  // the slot that is looked at next for room
};

}  // namespace cubind
