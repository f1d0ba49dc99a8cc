// GetArtifact and PutArtifact: cubins in chunks of 1 MiB.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "schemas/agent.pb.h"
#include "server/service/context.hpp"
#include "server/service/upload.hpp"

namespace cubind {

/// Deletes itself.
class GetArtifactCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  GetArtifactCall(ServiceContext& context, OpenCallPtr open, const v1::GetArtifactRequest& request);
  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  void write_next();

  const OpenCallPtr open_;
  std::shared_ptr<const Blob> blob_;
  std::size_t sent_ = 0;
  v1::ArtifactChunk chunk_;
  grpc::ByteBuffer bytes_;  // of the chunk
};

class PutArtifactCall final : public Upload<v1::ArtifactChunk, v1::PutArtifactReply> {
 public:
  PutArtifactCall(ServiceContext& context, OpenCallPtr open, grpc::ByteBuffer& reply)
      : Upload(context, std::move(open), reply,
               [&context](Strand::Function work) { context.jobs.post(std::move(work)); }) {}

 private:
  void take(const v1::ArtifactChunk& chunk) override;
  void work(v1::PutArtifactReply& reply) override;

  bool first_ = true;
  Blob blob_;
};

}  // namespace cubind
