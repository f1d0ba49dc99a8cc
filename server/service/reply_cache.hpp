// Replies to GetVariant that were given before, found by the very bytes that were asked: the ranks of a job
// ask the same, and a hit is neither parsed nor evaluated nor serialized again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "server/service/reply_table.hpp"

namespace cubind {

struct ServiceContext;

/// Counts the replacements of everything that the answer to given bytes depends on: while no count changes,
/// the answer holds. Read the counts before the things that they count.
struct ReplyState {
  std::uint64_t index = 0;
  std::uint64_t kernels = 0;
  std::uint64_t agents = 0;
  std::uint64_t artifacts = 0;
  bool operator==(const ReplyState&) const = default;
};

ReplyState reply_state(ServiceContext& context);

/// A reply that was given before, ready to be sent again.
struct KnownReply {
  grpc::Slice head;
  std::optional<CubinAtEnd> cubin;
  std::shared_ptr<const CachedBlob> blob;  // the cubin; null: none follows, or it is no longer in RAM
  AnswerQuality quality;
};

/// Thread-safe. Holds the replies of one state, roughly the latest ones, and none after the state has
/// changed. It has parts with a lock each: hits on many cores do not wait for one another.
class ReplyCache {
 public:
  /// `max_bytes` limits the sum of requests and heads.
  explicit ReplyCache(std::size_t max_bytes, std::size_t parts = kParts);

  std::optional<KnownReply> find(std::string_view request, const ReplyState& state);
  /// `state` is the one before the reply was worked out; nothing is kept if it has changed by now. Replaces
  /// an earlier reply to the request. `blob` is the end of `reply`.
  void keep(std::string_view request, const ReplyState& state, const WireReply& reply,
            const std::shared_ptr<const CachedBlob>& blob);
  /// How many were found whole.
  std::uint64_t found() const;

 private:
  static constexpr std::size_t kParts = 16;

  struct alignas(64) Part {
    mutable std::mutex mutex;
    ReplyState state;         // guarded by mutex
    ReplyTable replies;       // guarded by mutex
    std::uint64_t found = 0;  // guarded by mutex
  };

  Part& part_of(std::size_t hash) { return parts_[(hash >> 48) % parts_.size()]; }

  const std::size_t max_bytes_;  // of a part
  std::vector<Part> parts_;
};

}  // namespace cubind
