// Replies to GetVariant that were given before, found by the very bytes that were asked: the ranks of a job
// ask the same, and a hit is neither parsed nor evaluated nor serialized again.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "schemas/cubind.pb.h"
#include "server/fleet.hpp"
#include "server/kernel_library.hpp"

namespace cubind {

class BlobCache;
struct Blob;
struct ServiceContext;

/// All that the answer to given bytes depends on, by identity: while none of it is replaced, the answer
/// stands.
struct ReplyState {
  std::shared_ptr<const IndexSnapshot> index;
  std::shared_ptr<const KernelLibrary::Entries> kernels;
  std::shared_ptr<const AgentProfiles> agents;
  std::uint64_t artifacts = 0;  // how many were stored since the start
  bool operator==(const ReplyState&) const = default;
};

ReplyState reply_state(ServiceContext& context);

/// A reply in wire format; the cubin's bytes stay where the blob cache has them.
struct WireReply {
  grpc::Slice head;             // everything but the cubin
  std::optional<Digest> cubin;  // of the bytes that follow; absent: none do
};

/// `reply` without the cubin's bytes, which are to follow where `cubin` is given.
WireReply to_wire_reply(const v1::GetVariantReply& reply, std::optional<Digest> cubin);

/// The whole message. The blob is borrowed, not copied, until gRPC has sent it. Null: none follows.
grpc::ByteBuffer assemble(const WireReply& reply, const std::shared_ptr<const Blob>& blob);

/// Thread-safe. Holds the replies of one state, those that were asked for last, and none after the state has
/// changed.
class ReplyCache {
 public:
  /// `max_bytes` limits the sum of requests and heads.
  explicit ReplyCache(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  std::optional<WireReply> find(std::string_view request, const ReplyState& state);
  /// `state` is that before the reply was worked out; nothing is kept if another one holds by now.
  void keep(std::string_view request, const ReplyState& state, const WireReply& reply);

 private:
  struct Entry {
    std::string request;
    WireReply reply;
    std::size_t bytes() const { return request.size() + reply.head.size() + kOverhead; }
  };
  using Entries = std::list<Entry>;

  static constexpr std::size_t kOverhead = 256;  // list, map and slice

  const std::size_t max_bytes_;
  std::mutex mutex_;
  ReplyState state_;  // guarded by mutex_
  Entries entries_;   // guarded by mutex_; asked for last first
  std::unordered_map<std::string_view, Entries::iterator>
      places_;             // guarded by mutex_; into the entries' requests
  std::size_t bytes_ = 0;  // guarded by mutex_
};

}  // namespace cubind
