#include "server/service/reply_cache.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <utility>

#include "server/service/context.hpp"

namespace cubind {
namespace {

/// What precedes the cubin's bytes: a second `artifact` with nothing but `zstd_cubin`. Parsers merge the
/// occurrences of a message field, so the bytes need not lie inside the first.
std::string cubin_prefix(std::size_t bytes) {
  using google::protobuf::internal::WireFormatLite;
  using google::protobuf::io::CodedOutputStream;
  const auto size = static_cast<std::uint32_t>(bytes);
  const std::uint32_t cubin_tag = WireFormatLite::MakeTag(v1::ArtifactInfo::kZstdCubinFieldNumber,
                                                          WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  const std::uint32_t artifact_tag = WireFormatLite::MakeTag(v1::GetVariantReply::kArtifactFieldNumber,
                                                             WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  const std::size_t inside =
      CodedOutputStream::VarintSize32(cubin_tag) + CodedOutputStream::VarintSize32(size) + bytes;
  std::string prefix;
  google::protobuf::io::StringOutputStream stream(&prefix);
  CodedOutputStream out(&stream);
  out.WriteTag(artifact_tag);
  out.WriteVarint32(static_cast<std::uint32_t>(inside));
  out.WriteTag(cubin_tag);
  out.WriteVarint32(size);
  out.Trim();
  return prefix;
}

/// Keeps the blob alive until gRPC lets go of the slice.
grpc::Slice borrow(const std::shared_ptr<const Blob>& blob) {
  auto* owner = new std::shared_ptr<const Blob>(blob);
  // gRPC does not write to what it sends.
  auto* data = const_cast<char*>(blob->zstd.data());
  return grpc::Slice(
      data, blob->zstd.size(), [](void* held) { delete static_cast<std::shared_ptr<const Blob>*>(held); },
      owner);
}

}  // namespace

ReplyState reply_state(ServiceContext& context) {
  return {context.index.snapshot(), context.kernels.kernels(), context.fleet.agents(),
          context.artifacts.noted()};
}

WireReply to_wire_reply(const v1::GetVariantReply& reply, std::optional<Digest> cubin) {
  return {grpc::Slice(reply.SerializeAsString()), cubin};
}

grpc::ByteBuffer assemble(const WireReply& reply, const std::shared_ptr<const Blob>& blob) {
  if (!blob) {
    return grpc::ByteBuffer(&reply.head, 1);
  }
  const grpc::Slice slices[] = {reply.head, grpc::Slice(cubin_prefix(blob->zstd.size())), borrow(blob)};
  return grpc::ByteBuffer(slices, std::size(slices));
}

std::optional<WireReply> ReplyCache::find(std::string_view request, const ReplyState& state) {
  Entries outdated;  // destroyed after the lock is given back
  ReplyState replaced;
  const std::lock_guard lock(mutex_);
  if (state_ != state) {
    places_.clear();
    outdated.swap(entries_);
    bytes_ = 0;
    replaced = std::exchange(state_, state);
    return std::nullopt;
  }
  const auto found = places_.find(request);
  if (found == places_.end()) {
    return std::nullopt;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().reply;
}

void ReplyCache::keep(std::string_view request, const ReplyState& state, const WireReply& reply) {
  Entry entry{std::string(request), reply};
  const std::lock_guard lock(mutex_);
  if (state_ != state || places_.contains(request) || entry.bytes() > max_bytes_) {
    return;
  }
  bytes_ += entry.bytes();
  entries_.push_front(std::move(entry));
  places_[entries_.front().request] = entries_.begin();
  while (bytes_ > max_bytes_) {
    bytes_ -= entries_.back().bytes();
    places_.erase(entries_.back().request);
    entries_.pop_back();
  }
}

}  // namespace cubind
