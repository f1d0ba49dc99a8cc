#include "server/service/wire_reply.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <string>
#include <utility>

#include "server/store/rows.hpp"

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
grpc::Slice borrow(std::shared_ptr<const Blob> blob) {
  // gRPC does not write to what it sends.
  auto* data = const_cast<char*>(blob->zstd.data());
  const std::size_t size = blob->zstd.size();
  auto* owner = new std::shared_ptr<const Blob>(std::move(blob));
  return grpc::Slice(
      data, size, [](void* held) { delete static_cast<std::shared_ptr<const Blob>*>(held); }, owner);
}

}  // namespace

bool CubinAtEnd::is(const Blob& blob) const { return blob.cubin == cubin && blob.zstd.size() == bytes; }

WireReply to_wire_reply(const v1::GetVariantReply& reply, const Blob* blob) {
  std::string head = reply.SerializeAsString();
  if (!blob) {
    return {grpc::Slice(head), std::nullopt};
  }
  head += cubin_prefix(blob->zstd.size());
  return {grpc::Slice(head), CubinAtEnd{blob->cubin, blob->zstd.size()}};
}

grpc::ByteBuffer assemble(const grpc::Slice& head, std::shared_ptr<const Blob> blob) {
  if (!blob) {
    return grpc::ByteBuffer(&head, 1);
  }
  const grpc::Slice slices[] = {head, borrow(std::move(blob))};
  return grpc::ByteBuffer(slices, std::size(slices));
}

std::string_view as_text(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

}  // namespace cubind
