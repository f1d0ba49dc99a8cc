// A gRPC server in this process whose replies a test writes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "schemas/cubind.pb.h"

namespace cubind::test {

/// Scripts are called on server threads; an Error or a grpc::Status that they throw becomes the status. One
/// that is not set is UNIMPLEMENTED. Set them before the first call.
struct Scripts {
  bool marks = true;  // errors have the daemon's mark, as those of a proxy have not
  using Emit = std::function<bool(const v1::TuneEvent&)>;  // false: the caller has gone
  std::function<v1::GetVariantReply(const v1::GetVariantRequest&)> get_variant;
  std::function<std::string(const std::string& digest)> get_artifact;  // sent in chunks of 1 MiB
  std::function<void(const v1::TuneRequest&, const Emit&)> tune;
  std::function<void(const std::string& job, const Emit&)> watch_job;
  std::function<v1::ListKernelsReply(const v1::ListKernelsRequest&)> list_kernels;
  std::function<v1::CheckKernelReply(const v1::CheckKernelRequest&)> check_kernel;
  std::function<v1::ListDevicesReply()> list_devices;
  std::function<v1::ListJobsReply(bool include_ended)> list_jobs;
  std::function<v1::Job(const std::string& id)> cancel_job;
  std::function<v1::TableChunk(const v1::ExportTableRequest&)> export_table;
  std::function<v1::ImportTableReply(const std::string& json, const std::string& file)> import_table;
  std::function<v1::GetStatusReply()> get_status;
  std::function<v1::ListWantedReply()> list_wanted;
  std::function<v1::ListRecordsReply(const v1::ListRecordsRequest&)> list_records;
};

class FakeDaemon {
 public:
  FakeDaemon();  // listens on a Unix socket of its own
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  Scripts scripts;

  std::string address() const;  // unix:///...
  int artifact_chunks() const;  // sent so far

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace cubind::test
