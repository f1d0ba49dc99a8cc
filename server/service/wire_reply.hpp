// Replies to GetVariant in wire format: everything but the cubin's bytes in one piece, which is kept, and
// those bytes in another, which is borrowed from the blob cache.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "base/digest.hpp"
#include "schemas/cubind.pb.h"
#include "server/service/answer_counts.hpp"

namespace cubind {

struct Blob;

/// The compressed cubin that a message ends with.
struct CubinAtEnd {
  Digest cubin;
  std::size_t bytes = 0;

  bool is(const Blob& blob) const;
};

/// A reply in wire format, in two pieces.
struct WireReply {
  grpc::Slice head;                 // everything before the cubin's bytes
  std::optional<CubinAtEnd> cubin;  // absent: the head is the whole message
  AnswerQuality quality = {};       // what the metrics count it under
};

/// `reply` without the cubin's bytes; those of `blob` follow. Null: none do.
WireReply to_wire_reply(const v1::GetVariantReply& reply, const Blob* blob);

/// The whole message. The blob is borrowed, not copied, until gRPC has sent it; null if none follows.
grpc::ByteBuffer assemble(const grpc::Slice& head, std::shared_ptr<const Blob> blob);

std::string_view as_text(const grpc::Slice& slice);

}  // namespace cubind
