// ExportTable and ImportTable.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"
#include "server/service/idle_end.hpp"
#include "server/service/open_call.hpp"
#include "server/service/upload.hpp"
#include "server/table/table_import.hpp"

namespace cubind {

/// Writes a table in one transaction, publishes the records and queues the compiles of the winners. Do not
/// call it on the job thread, which it uses. Throws the errors of import_table(); then nothing is imported.
ImportReport take_table(ServiceContext& context, const Table& table, const std::string& file,
                        const ImportOptions& options, const Interrupt& interrupt = {});

/// For a table's namespace, where none stands for all. Throws PermissionDenied.
void require_table_namespace(const OpenCall& open, const std::string& name_space);

class ExportCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                         public std::enable_shared_from_this<ExportCall> {
 public:
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* start(ServiceContext& context, OpenCallPtr open,
                                                           grpc::CallbackServerContext& call,
                                                           v1::ExportTableRequest request);
  void OnWriteDone(bool ok) override;
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override { self_.reset(); }

 private:
  ExportCall(ServiceContext& context, OpenCallPtr open, grpc::CallbackServerContext& call)
      : context_(context), open_(std::move(open)), call_(call) {}
  void print(const v1::ExportTableRequest& request);
  void begin_to_write();
  void write_next();
  /// The caller does not read: a status behind what it has to read would not reach it.
  void end_idle();
  void finish(const grpc::Status& status);

  ServiceContext& context_;
  const OpenCallPtr open_;
  grpc::CallbackServerContext& call_;
  std::shared_ptr<ExportCall> self_;
  std::atomic<bool> cancelled_{false}, ended_{false};
  std::string text_;
  std::size_t sent_ = 0;
  v1::TableChunk chunk_;
  grpc::ByteBuffer bytes_;  // of the chunk
  std::shared_ptr<IdleEnd> idle_end_;
};

class ImportCall final : public Upload<v1::TableChunk, v1::ImportTableReply> {
 public:
  ImportCall(ServiceContext& context, const OpenCallPtr& open, grpc::ByteBuffer& reply)
      : Upload(context, open, reply, [&context, open](Strand::Function work) {
          context.background.post(open->sharer(), std::move(work));
        }) {}

 private:
  void take(const v1::TableChunk& chunk) override;
  void work(v1::ImportTableReply& reply) override;

  bool first_ = true;
  std::string file_ = "table";
  ImportOptions options_;
  std::string text_;
};

}  // namespace cubind
