// GetArtifact and PutArtifact: cubins in chunks of 1 MiB.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "schemas/agent.pb.h"
#include "server/service/context.hpp"
#include "server/service/upload.hpp"

namespace cubind {

/// Deletes itself.
class GetArtifactCall final : public grpc::ServerWriteReactor<v1::ArtifactChunk> {
 public:
  GetArtifactCall(ServiceContext& context, const v1::GetArtifactRequest& request);
  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  void write_next();

  std::shared_ptr<const Blob> blob_;
  std::size_t sent_ = 0;
  v1::ArtifactChunk chunk_;
};

class PutArtifactCall final : public Upload<v1::ArtifactChunk> {
 public:
  explicit PutArtifactCall(ServiceContext& context) : Upload(context.jobs), context_(context) {}

 private:
  void take(const v1::ArtifactChunk& chunk) override;
  void work() override;

  ServiceContext& context_;
  bool first_ = true;
  Blob blob_;
};

}  // namespace cubind
