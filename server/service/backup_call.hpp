// Backup: a copy of the store while the daemon runs.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/unique_fd.hpp"
#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"
#include "server/service/open_call.hpp"

namespace cubind {

class BackupCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                         public std::enable_shared_from_this<BackupCall> {
 public:
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* start(ServiceContext& context, OpenCallPtr open);
  void OnWriteDone(bool ok) override;
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override { self_.reset(); }

 private:
  BackupCall(ServiceContext& context, OpenCallPtr open) : context_(context), open_(std::move(open)) {}
  void copy();
  void write_next();

  ServiceContext& context_;
  const OpenCallPtr open_;
  std::shared_ptr<BackupCall> self_;
  std::atomic<bool> cancelled_{false};
  UniqueFd copy_;
  std::uint64_t size_ = 0, sent_ = 0;
  v1::BackupChunk chunk_;
  grpc::ByteBuffer bytes_;  // of the chunk
};

}  // namespace cubind
