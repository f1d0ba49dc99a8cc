#include "client/connection.hpp"

#include <grpcpp/generic/generic_stub.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "client/connection_faults.hpp"
#include "connect/address.hpp"
#include "connect/channel.hpp"
#include "plan/answer_wire.hpp"
#include "schemas/cubind.grpc.pb.h"
#include "schemas/limits.hpp"

namespace cubind {
namespace {

constexpr const char* kSystemSocket = "/run/cubind/cubind.sock";
// A channel's default is to retry an absent daemon first after 1 s and later every two minutes.
constexpr int kFirstReconnectMs = 100;
constexpr int kLastReconnectMs = 2000;

void apply_deadline(grpc::ClientContext& context, std::optional<Milliseconds> deadline) {
  if (deadline) {
    context.set_deadline(std::chrono::system_clock::now() + *deadline);
  }
}

}  // namespace

std::string resolve_address(const std::string& given) {
  std::string address = given;
  if (address.empty()) {
    if (const char* variable = std::getenv("CUBIND_ADDRESS")) {
      address = variable;
    }
  }
  if (address.empty()) {
    const std::filesystem::path user = user_runtime_dir() / "cubind.sock";
    const bool system_only = !std::filesystem::exists(user) && std::filesystem::exists(kSystemSocket);
    address = "unix://" + (system_only ? std::string(kSystemSocket) : user.string());
  }
  check_address(address);
  return address;
}

Digest caller_digest() {
  const std::filesystem::path file = ChannelSecrets::from_environment().token_file;
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored) ? Digest::of(read_file(file)) : Digest();
}

struct Connection::Impl {
  std::string address;
  /// The unit of fair sharing of compilers: this process.
  const std::string caller = std::to_string(::getpid());
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Cubind::Stub> stub;

  // The stub's member function of a unary rpc.
  template <typename Request, typename Reply>
  using Unary = grpc::Status (v1::Cubind::Stub::*)(grpc::ClientContext*, const Request&, Reply*);

  template <typename Request, typename Reply>
  Reply call(Unary<Request, Reply> rpc, const Request& request, Milliseconds deadline) const {
    grpc::ClientContext context;
    apply_deadline(context, deadline);
    context.AddMetadata("cubind-caller", caller);
    Reply reply;
    check((stub.get()->*rpc)(&context, request, &reply), context);
    return reply;
  }

  template <typename Message, typename Use>
  void read_all(grpc::ClientReader<Message>& reader, const grpc::ClientContext& context,
                const Use& use) const {
    Message message;
    while (reader.Read(&message)) {
      use(message);
    }
    check(reader.Finish(), context);
  }

  void check(const grpc::Status& status, const grpc::ClientContext& context) const {
    if (!status.ok()) {
      throw error_of(status, context, address);
    }
  }
};

Connection::Connection(std::string address, const ConnectionTimes& times) : impl_(std::make_unique<Impl>()) {
  impl_->address = std::move(address);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(times.connect.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(times.ping.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(times.answer.count()));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  impl_->channel = open_channel(impl_->address, arguments);
  impl_->stub = v1::Cubind::NewStub(impl_->channel);
}
Connection::~Connection() = default;
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;

const std::string& Connection::address() const { return impl_->address; }

v1::GetVariantReply Connection::get_variant(const v1::GetVariantRequest& request,
                                            Milliseconds deadline) const {
  return impl_->call(&v1::Cubind::Stub::GetVariant, request, deadline);
}

void Connection::require_kernel(const std::string& name, Milliseconds deadline) const {
  v1::GetVariantRequest request;  // without a device, which the daemon refuses after an unknown name
  request.set_kernel(name);
  try {
    get_variant(request, deadline);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::NotFound) {
      throw;
    }
  }
}

std::string Connection::get_artifact(const Digest& digest, Milliseconds deadline) const {
  return stored_artifact(digest, deadline).zstd;
}

StoredArtifact Connection::stored_artifact(const Digest& digest, Milliseconds deadline) const {
  v1::GetArtifactRequest request;
  request.set_digest(bytes_of(digest));
  grpc::ClientContext context;
  apply_deadline(context, deadline);
  StoredArtifact stored;
  impl_->read_all(*impl_->stub->GetArtifact(&context, request), context, [&](const v1::ArtifactChunk& chunk) {
    if (chunk.has_info()) {
      stored.info = chunk.info();
    }
    stored.zstd += chunk.data();
  });
  return stored;
}

void Connection::tune(const v1::TuneRequest& request, const OnTuneEvent& on_event,
                      const std::stop_token& stop, std::optional<Milliseconds> deadline) const {
  grpc::ClientContext context;
  apply_deadline(context, deadline);
  const auto reader = impl_->stub->Tune(&context, request);
  const std::stop_callback cancel(stop, [&] { context.TryCancel(); });
  impl_->read_all(*reader, context, on_event);
}

void Connection::watch_job(const std::string& id, const OnTuneEvent& on_event, const std::stop_token& stop,
                           std::optional<Milliseconds> deadline) const {
  v1::WatchJobRequest request;
  request.set_id(id);
  grpc::ClientContext context;
  apply_deadline(context, deadline);
  const auto reader = impl_->stub->WatchJob(&context, request);
  const std::stop_callback cancel(stop, [&] { context.TryCancel(); });
  impl_->read_all(*reader, context, on_event);
}

v1::ListKernelsReply Connection::list_kernels(Milliseconds deadline, bool defined) const {
  v1::ListKernelsRequest request;
  request.set_defined(defined);
  return impl_->call(&v1::Cubind::Stub::ListKernels, request, deadline);
}

v1::CheckKernelReply Connection::check_kernel(const v1::CheckKernelRequest& request,
                                              Milliseconds deadline) const {
  return impl_->call(&v1::Cubind::Stub::CheckKernel, request, deadline);
}

v1::ListDevicesReply Connection::list_devices(Milliseconds deadline) const {
  return impl_->call(&v1::Cubind::Stub::ListDevices, v1::ListDevicesRequest(), deadline);
}

v1::ListJobsReply Connection::list_jobs(bool include_ended, Milliseconds deadline) const {
  v1::ListJobsRequest request;
  request.set_include_ended(include_ended);
  v1::ListJobsReply jobs;
  do {
    v1::ListJobsReply page = impl_->call(&v1::Cubind::Stub::ListJobs, request, deadline);
    request.set_page_token(page.next_page_token());
    jobs.MergeFrom(page);
  } while (!request.page_token().empty());
  jobs.clear_next_page_token();
  return jobs;
}

v1::Job Connection::get_job(const std::string& id, Milliseconds deadline) const {
  if (id.empty()) {  // the daemon would list all of them
    throw Error(ErrorCode::InvalidArgument, "id", "is empty");
  }
  v1::ListJobsRequest request;
  request.set_id(id);
  v1::ListJobsReply reply = impl_->call(&v1::Cubind::Stub::ListJobs, request, deadline);
  if (reply.jobs().empty()) {
    throw Error(ErrorCode::Internal, "ListJobs", "the daemon left job " + id + " out");
  }
  return std::move(*reply.mutable_jobs(0));
}

v1::Job Connection::cancel_job(const std::string& id, Milliseconds deadline) const {
  v1::CancelJobRequest request;
  request.set_id(id);
  return impl_->call(&v1::Cubind::Stub::CancelJob, request, deadline).job();
}

v1::EvaluateReply Connection::evaluate(const v1::EvaluateRequest& request, Milliseconds deadline) const {
  return impl_->call(&v1::Cubind::Stub::Evaluate, request, deadline);
}

v1::ForgetFaultsReply Connection::forget_faults(const v1::ForgetFaultsRequest& request,
                                                Milliseconds deadline) const {
  return impl_->call(&v1::Cubind::Stub::ForgetFaults, request, deadline);
}

v1::GetStatusReply Connection::get_status(Milliseconds deadline) const {
  return impl_->call(&v1::Cubind::Stub::GetStatus, v1::GetStatusRequest(), deadline);
}

// Debian ships no generated code for the health service. Its messages are a few bytes: an empty request asks
// for the whole server, the reply is field 1, a varint, which is 1 for SERVING.
bool Connection::is_serving(Milliseconds deadline) const {
  grpc::ClientContext context;
  apply_deadline(context, deadline);
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer reply;
  std::promise<grpc::Status> ended;
  grpc::GenericStub(impl_->channel)
      .UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &reply,
                 [&](grpc::Status status) { ended.set_value(std::move(status)); });
  impl_->check(ended.get_future().get(), context);
  grpc::Slice bytes;
  return reply.DumpToSingleSlice(&bytes).ok() && bytes.size() == 2 && bytes.begin()[0] == 0x08 &&
         bytes.begin()[1] == 1;
}

v1::ListWantedReply Connection::list_wanted(const v1::ListWantedRequest& request,
                                            Milliseconds deadline) const {
  return impl_->call(&v1::Cubind::Stub::ListWanted, request, deadline);
}

std::vector<v1::ListedRecord> Connection::list_records(v1::ListRecordsRequest request,
                                                       Milliseconds deadline) const {
  std::vector<v1::ListedRecord> records;
  while (true) {
    v1::ListRecordsReply reply = impl_->call(&v1::Cubind::Stub::ListRecords, request, deadline);
    if (reply.records().empty()) {
      return records;
    }
    std::ranges::move(*reply.mutable_records(), std::back_inserter(records));
    request.set_after(reply.last());
  }
}

v1::TableChunk Connection::export_table(const v1::ExportTableRequest& request, Milliseconds deadline) const {
  grpc::ClientContext context;
  apply_deadline(context, deadline);
  v1::TableChunk table;
  std::string text;
  impl_->read_all(*impl_->stub->ExportTable(&context, request), context, [&](v1::TableChunk& chunk) {
    text += chunk.json();
    chunk.clear_json();
    table.MergeFrom(chunk);
  });
  table.set_json(std::move(text));
  return table;
}

std::uint64_t Connection::backup(const std::function<void(std::string_view)>& take,
                                 std::optional<Milliseconds> deadline) const {
  grpc::ClientContext context;
  apply_deadline(context, deadline);
  std::uint64_t total = 0, taken = 0;
  impl_->read_all(*impl_->stub->Backup(&context, v1::BackupRequest()), context,
                  [&](const v1::BackupChunk& chunk) {
                    total = std::max(total, std::uint64_t{chunk.total_bytes()});
                    taken += chunk.data().size();
                    take(chunk.data());
                  });
  if (taken != total || total == 0) {
    throw Error(ErrorCode::DataLoss, "backup",
                std::to_string(taken) + " bytes of " + std::to_string(total) + " came");
  }
  return taken;
}

v1::ImportTableReply Connection::import_table(const std::string& text, const std::string& file,
                                              const std::string& name_space, Milliseconds deadline) const {
  grpc::ClientContext context;
  apply_deadline(context, deadline);
  v1::ImportTableReply reply;
  const auto writer = impl_->stub->ImportTable(&context, &reply);
  v1::TableChunk chunk;
  chunk.set_file(file);
  chunk.set_namespace_(name_space);
  std::size_t at = 0;
  do {
    chunk.set_json(text.substr(at, kChunkBytes));
    at += kChunkBytes;
    // A daemon that refuses a chunk says why in the status.
    if (!writer->Write(chunk)) {
      break;
    }
    chunk.Clear();
  } while (at < text.size());
  writer->WritesDone();
  impl_->check(writer->Finish(), context);
  return reply;
}

}  // namespace cubind
