#include "server/service/artifact_call.hpp"

#include "plan/answer_wire.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/replies.hpp"
#include "server/service/status.hpp"
#include "server/store/store.hpp"

namespace cubind {

GetArtifactCall::GetArtifactCall(ServiceContext& context, OpenCallPtr open,
                                 const v1::GetArtifactRequest& request)
    : open_(std::move(open)) {
  const grpc::Status status = guarded([&] {
    const Digest digest = digest_from_wire(request.digest(), "digest");
    blob_ = context.blobs.find(digest);
    if (!blob_) {
      throw Error(ErrorCode::NotFound, "digest", "no artifact " + digest.hex() + " is stored");
    }
    std::optional<ArtifactRow> artifact;
    context.store.read([&](StoreReader& reader) { artifact = reader.artifact_by_cubin(digest); });
    if (artifact) {
      to_wire(*artifact, *chunk_.mutable_info());
      chunk_.mutable_info()->mutable_symbols()->Assign(artifact->entry_symbols.begin(),
                                                       artifact->entry_symbols.end());
    }
    chunk_.mutable_info()->set_digest(bytes_of(digest));
    chunk_.mutable_info()->set_cubin_bytes(blob_->cubin_bytes);
    open_->hold_bytes(blob_->zstd.size());  // it stays in RAM until the caller has read it
  });
  if (status.ok()) {
    write_next();
  } else {
    Finish(status);
  }
}

void GetArtifactCall::write_next() {
  chunk_.set_data(blob_->zstd.substr(sent_, kChunkBytes));
  sent_ += chunk_.data().size();
  bytes_ = print_message(chunk_);
  StartWrite(&bytes_);
}

void GetArtifactCall::OnWriteDone(bool ok) {
  if (!ok) {
    Finish({grpc::StatusCode::CANCELLED, "the caller went away"});
  } else if (sent_ >= blob_->zstd.size()) {
    Finish(grpc::Status::OK);
  } else {
    chunk_.clear_info();
    write_next();
  }
}

void PutArtifactCall::take(const v1::ArtifactChunk& chunk) {
  if (std::exchange(first_, false)) {
    blob_.cubin = digest_from_wire(chunk.info().digest(), "info.digest");
    blob_.cubin_bytes = chunk.info().cubin_bytes();
    if (blob_.cubin_bytes > kMaxCubinBytes) {
      throw Error(
          ErrorCode::ResourceExhausted, "info.cubin_bytes",
          std::to_string(blob_.cubin_bytes) + " is above the limit of " + std::to_string(kMaxCubinBytes));
    }
  }
  if (blob_.zstd.size() + chunk.data().size() > kMaxCubinBytes) {
    throw Error(ErrorCode::ResourceExhausted, "data",
                "the chunks are above the limit of " + std::to_string(kMaxCubinBytes));
  }
  blob_.zstd += chunk.data();
}

void PutArtifactCall::work(v1::PutArtifactReply&) {
  if (first_) {
    throw Error(ErrorCode::InvalidArgument, "info", "the stream ended without a chunk");
  }
  context_.store.write([&](StoreWriter& writer) {
    try {
      writer.put_blob(blob_);
    } catch (const Error& error) {
      // Bytes that are not a zstd frame, or longer than they claim, are the sender's fault here, not the
      // store's.
      const bool senders = error.code() == ErrorCode::DataLoss && error.where() != "store";
      throw senders ? Error(ErrorCode::InvalidArgument, "data", error.what()) : error;
    }
  });
}

}  // namespace cubind
