// GetArtifact and PutArtifact: cubins in chunks of 1 MiB.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "schemas/agent.pb.h"
#include "server/service/context.hpp"

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

class PutArtifactCall final : public grpc::ServerReadReactor<v1::ArtifactChunk>,
                              public std::enable_shared_from_this<PutArtifactCall> {
 public:
  static grpc::ServerReadReactor<v1::ArtifactChunk>* start(ServiceContext& context);
  void OnReadDone(bool ok) override;
  void OnDone() override { self_.reset(); }

 private:
  explicit PutArtifactCall(ServiceContext& context) : context_(context) {}
  void take();
  void store();
  void finish(const grpc::Status& status);

  ServiceContext& context_;
  std::shared_ptr<PutArtifactCall> self_;
  v1::ArtifactChunk chunk_;
  bool first_ = true;
  bool finished_ = false;
  Blob blob_;
};

}  // namespace cubind
