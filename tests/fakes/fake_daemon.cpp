#include "tests/fakes/fake_daemon.hpp"

#include <grpcpp/grpcpp.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "schemas/cubind.grpc.pb.h"
#include "schemas/status_mark.hpp"

namespace cubind::test {
namespace {

// Runs the script, if there is one.
template <typename Script, typename Use>
grpc::Status run(grpc::ServerContext* call, const Scripts& scripts, const Script& script, const Use& use) {
  if (scripts.marks) {
    call->AddTrailingMetadata(kStatusMark, "1");
  }
  if (!script) {
    return {grpc::StatusCode::UNIMPLEMENTED, "the test has no script for this"};
  }
  try {
    use();
    return grpc::Status::OK;
  } catch (const grpc::Status& status) {
    return status;
  } catch (const Error& error) {
    return {static_cast<grpc::StatusCode>(error.code()), error.what()};
  }
}

}  // namespace

struct FakeDaemon::Server final : v1::Cubind::Service {
  explicit Server(const Scripts& given) : scripts(given) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address(), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server = builder.BuildAndStart();
  }
  ~Server() override { server->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return "unix://" + (folder.path() / "cubind.sock").string(); }

  grpc::Status GetVariant(grpc::ServerContext* call, const v1::GetVariantRequest* request,
                          v1::GetVariantReply* reply) override {
    return run(call, scripts, scripts.get_variant, [&] { *reply = scripts.get_variant(*request); });
  }
  grpc::Status GetArtifact(grpc::ServerContext* call, const v1::GetArtifactRequest* request,
                           grpc::ServerWriter<v1::ArtifactChunk>* writer) override {
    return run(call, scripts, scripts.get_artifact, [&] {
      const std::string bytes = scripts.get_artifact(request->digest());
      for (std::size_t at = 0; at < bytes.size(); at += 1 << 20) {
        v1::ArtifactChunk chunk;
        chunk.set_data(bytes.substr(at, 1 << 20));
        writer->Write(chunk);
        ++chunks;
      }
    });
  }
  grpc::Status Tune(grpc::ServerContext* call, const v1::TuneRequest* request,
                    grpc::ServerWriter<v1::TuneEvent>* writer) override {
    return run(call, scripts, scripts.tune, [&] {
      scripts.tune(*request, [&](const v1::TuneEvent& event) { return writer->Write(event); });
    });
  }
  grpc::Status WatchJob(grpc::ServerContext* call, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::TuneEvent>* writer) override {
    return run(call, scripts, scripts.watch_job, [&] {
      scripts.watch_job(request->id(), [&](const v1::TuneEvent& event) { return writer->Write(event); });
    });
  }
  grpc::Status ListKernels(grpc::ServerContext* call, const v1::ListKernelsRequest* request,
                           v1::ListKernelsReply* reply) override {
    return run(call, scripts, scripts.list_kernels, [&] { *reply = scripts.list_kernels(*request); });
  }
  grpc::Status CheckKernel(grpc::ServerContext* call, const v1::CheckKernelRequest* request,
                           v1::CheckKernelReply* reply) override {
    return run(call, scripts, scripts.check_kernel, [&] { *reply = scripts.check_kernel(*request); });
  }
  grpc::Status ListDevices(grpc::ServerContext* call, const v1::ListDevicesRequest*,
                           v1::ListDevicesReply* reply) override {
    return run(call, scripts, scripts.list_devices, [&] { *reply = scripts.list_devices(); });
  }
  grpc::Status ListJobs(grpc::ServerContext* call, const v1::ListJobsRequest* request,
                        v1::ListJobsReply* reply) override {
    return run(call, scripts, scripts.list_jobs,
               [&] { *reply = scripts.list_jobs(request->include_ended()); });
  }
  grpc::Status CancelJob(grpc::ServerContext* call, const v1::CancelJobRequest* request,
                         v1::CancelJobReply* reply) override {
    return run(call, scripts, scripts.cancel_job,
               [&] { *reply->mutable_job() = scripts.cancel_job(request->id()); });
  }
  grpc::Status ExportTable(grpc::ServerContext* call, const v1::ExportTableRequest* request,
                           grpc::ServerWriter<v1::TableChunk>* writer) override {
    return run(call, scripts, scripts.export_table, [&] { writer->Write(scripts.export_table(*request)); });
  }
  grpc::Status ImportTable(grpc::ServerContext* call, grpc::ServerReader<v1::TableChunk>* reader,
                           v1::ImportTableReply* reply) override {
    std::string json, file;
    for (v1::TableChunk chunk; reader->Read(&chunk);) {
      json += chunk.json();
      file += chunk.file();
    }
    return run(call, scripts, scripts.import_table, [&] { *reply = scripts.import_table(json, file); });
  }
  grpc::Status GetStatus(grpc::ServerContext* call, const v1::GetStatusRequest*,
                         v1::GetStatusReply* reply) override {
    return run(call, scripts, scripts.get_status, [&] { *reply = scripts.get_status(); });
  }
  grpc::Status ListWanted(grpc::ServerContext* call, const v1::ListWantedRequest*,
                          v1::ListWantedReply* reply) override {
    return run(call, scripts, scripts.list_wanted, [&] { *reply = scripts.list_wanted(); });
  }
  grpc::Status ListRecords(grpc::ServerContext* call, const v1::ListRecordsRequest* request,
                           v1::ListRecordsReply* reply) override {
    return run(call, scripts, scripts.list_records, [&] { *reply = scripts.list_records(*request); });
  }

  const Scripts& scripts;
  TempDir folder{"cubind-fake"};
  std::atomic<int> chunks{0};
  std::unique_ptr<grpc::Server> server;
};

FakeDaemon::FakeDaemon() : server_(std::make_unique<Server>(scripts)) {}
FakeDaemon::~FakeDaemon() = default;

std::string FakeDaemon::address() const { return server_->address(); }
int FakeDaemon::artifact_chunks() const { return server_->chunks; }

}  // namespace cubind::test
