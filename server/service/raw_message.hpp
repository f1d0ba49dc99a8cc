// Messages in the bytes that gRPC hands over. gRPC's own parser ends a call whose message it cannot read with
// UNIMPLEMENTED and no word, and takes such a part of a stream for the stream's end.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "base/error.hpp"

namespace cubind {

/// Throws InvalidArgument; `what` is for its message.
template <typename Message>
Message parse_message(const grpc::ByteBuffer& bytes, const std::string& what = "request") {
  Message message;
  grpc::ByteBuffer read(bytes);  // shares them; reading empties it
  if (!grpc::SerializationTraits<Message>::Deserialize(&read, &message).ok()) {
    throw Error(ErrorCode::InvalidArgument, what,
                "is not a " + Message::descriptor()->name() + " in protobuf's wire format");
  }
  return message;
}

template <typename Message>
grpc::ByteBuffer print_message(const Message& message) {
  grpc::ByteBuffer bytes;
  bool own = false;
  if (!grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own).ok()) {
    throw Error(ErrorCode::Internal, Message::descriptor()->name(), "cannot be serialized");
  }
  return bytes;
}

}  // namespace cubind
