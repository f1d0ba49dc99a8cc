// ExportTable and ImportTable.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>

#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"
#include "server/service/upload.hpp"
#include "server/table/table_import.hpp"

namespace cubind {

/// Writes a table in one transaction, publishes the records and queues the compiles of the winners. Do not
/// call it on the job thread, which it uses. Throws the errors of import_table(); then nothing is imported.
ImportReport take_table(ServiceContext& context, const Table& table, const std::string& file,
                        const std::string& name_space, const Interrupt& interrupt = {});

class ExportCall final : public grpc::ServerWriteReactor<v1::TableChunk>,
                         public std::enable_shared_from_this<ExportCall> {
 public:
  static grpc::ServerWriteReactor<v1::TableChunk>* start(ServiceContext& context,
                                                         const v1::ExportTableRequest& request);
  void OnWriteDone(bool ok) override;
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override { self_.reset(); }

 private:
  explicit ExportCall(ServiceContext& context) : context_(context) {}
  void print(const v1::ExportTableRequest& request);
  void write_next();

  ServiceContext& context_;
  std::shared_ptr<ExportCall> self_;
  std::atomic<bool> cancelled_{false};
  std::string text_;
  std::size_t sent_ = 0;
  v1::TableChunk chunk_;
};

class ImportCall final : public Upload<v1::TableChunk> {
 public:
  ImportCall(ServiceContext& context, v1::ImportTableReply& reply)
      : Upload(context.background), context_(context), reply_(reply) {}

 private:
  void take(const v1::TableChunk& chunk) override;
  void work() override;

  ServiceContext& context_;
  v1::ImportTableReply& reply_;
  bool first_ = true;
  std::string file_ = "table";
  std::string name_space_;
  std::string text_;
};

}  // namespace cubind
