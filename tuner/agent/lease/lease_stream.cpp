#include "tuner/agent/lease/lease_stream.hpp"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/zstd.hpp"
#include "connect/channel.hpp"
#include "plan/answer_wire.hpp"
#include "schemas/agent.grpc.pb.h"
#include "schemas/cubind.grpc.pb.h"
#include "schemas/keepalive.hpp"
#include "schemas/limits.hpp"

namespace cubind {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxMessageBytes = 64 << 20;  // a lease has the sources of its kernel
constexpr milliseconds kAckPoll{50};
// A job that is handed back sends its result behind batches in flight; the daemon wants that within 5 s.
constexpr milliseconds kGrace{3000};
constexpr milliseconds kCallDeadline{60'000};
// The wait for the end of a stream of which nothing more can be read.
constexpr milliseconds kGoodbye{1000};

bool would_refuse_again(grpc::StatusCode code) {
  return code == grpc::StatusCode::FAILED_PRECONDITION || code == grpc::StatusCode::PERMISSION_DENIED ||
         code == grpc::StatusCode::UNAUTHENTICATED || code == grpc::StatusCode::UNIMPLEMENTED;
}

std::shared_ptr<grpc::Channel> make_channel(const std::string& address,
                                            const std::filesystem::path& token_file) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // A pool of its own: a broken connection of an earlier stream is not shared.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingAnswerMs);
  ChannelSecrets secrets = ChannelSecrets::from_environment();
  if (!token_file.empty()) {
    secrets.token_file = token_file;
  }
  return open_channel(address, arguments, secrets);
}

}  // namespace

struct LeaseStream::State {
  State(const std::string& address, const std::filesystem::path& token_file, v1::Hello first,
        std::function<void(const v1::DaemonMessage&)> handler)
      : hello(std::move(first)),
        channel(make_channel(address, token_file)),
        agents(v1::AgentService::NewStub(channel)),
        cubind(v1::Cubind::NewStub(channel)),
        on_message(std::move(handler)) {}

  void read();
  std::string end();
  bool write(const v1::AgentMessage& message);
  Error call_error(const char* call, const grpc::Status& status) const;

  const v1::Hello hello;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::AgentService::Stub> agents;
  std::unique_ptr<v1::Cubind::Stub> cubind;
  std::function<void(const v1::DaemonMessage&)> on_message;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DaemonMessage>> stream;

  std::mutex write_mutex;           // held during a write: gRPC takes one at a time
  std::uint64_t last_sequence = 0;  // guarded by write_mutex

  mutable std::mutex mutex;  // taken after write_mutex where both are
  std::condition_variable changed;
  // By sequence number, empty until it comes. Guarded by mutex.
  std::map<std::uint64_t, std::optional<v1::Ack>> awaited;
  std::optional<std::string> broken;  // guarded by mutex
  bool refused = false;               // guarded by mutex
  std::thread reader;
};

void LeaseStream::State::read() {
  // Blocks until the daemon is there. No other thread writes before its first message has come.
  v1::AgentMessage first;
  *first.mutable_hello() = hello;
  stream->Write(first);
  v1::DaemonMessage message;
  while (stream->Read(&message)) {
    if (message.has_ack()) {
      const std::lock_guard lock(mutex);
      if (const auto found = awaited.find(message.ack().sequence()); found != awaited.end()) {
        found->second = message.ack();
      }
      changed.notify_all();
    } else {
      on_message(message);
    }
  }
  const std::string why = end();
  const std::lock_guard lock(mutex);
  broken = why;
  changed.notify_all();
}

// Why nothing more is read. A message that does not parse ends the reading as well: the daemon knows nothing
// of that, and Finish() would wait for it forever. A daemon that has ended the stream has its words here
// already.
std::string LeaseStream::State::end() {
  std::atomic<bool> gave_up{false};
  std::jthread patience([&](const std::stop_token& finished) {
    std::mutex waiting;
    std::condition_variable_any never;
    std::unique_lock lock(waiting);
    never.wait_for(lock, finished, kGoodbye, [] { return false; });
    if (finished.stop_requested()) {
      return;
    }
    gave_up = true;
    context.TryCancel();
  });
  const grpc::Status status = stream->Finish();
  {
    const std::lock_guard lock(mutex);
    refused = would_refuse_again(status.error_code());
  }
  if (gave_up) {
    return "the daemon sent something that is not a message";
  }
  return status.ok() ? "the daemon ended the stream" : status.error_message();
}

bool LeaseStream::State::write(const v1::AgentMessage& message) {
  {
    const std::lock_guard lock(mutex);
    if (broken) {
      return false;
    }
  }
  return stream->Write(message);
}

// The lease is lost with the stream alone. Every other failure of a call is the job's outcome: a busy or slow
// daemon is asked again later, and a refusal is quoted.
Error LeaseStream::State::call_error(const char* call, const grpc::Status& status) const {
  {
    const std::lock_guard lock(mutex);
    if (broken) {
      return Error(ErrorCode::Aborted, "lease", *broken);
    }
  }
  const bool again = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                     status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  return Error(again ? ErrorCode::Unavailable : ErrorCode::FailedPrecondition, call, status.error_message());
}

LeaseStream::LeaseStream(const std::string& address, const v1::Hello& hello,
                         std::function<void(const v1::DaemonMessage&)> on_message,
                         const std::filesystem::path& token_file)
    : state_(std::make_unique<State>(address, token_file, hello, std::move(on_message))) {}

void LeaseStream::start() {
  state_->context.set_wait_for_ready(true);
  // It comes with the first message, which the reader sends: no other thread waits for an absent daemon.
  state_->context.set_initial_metadata_corked(true);
  state_->stream = state_->agents->Serve(&state_->context);
  state_->reader = std::thread([state = state_.get()] { state->read(); });
}

LeaseStream::~LeaseStream() {
  if (!state_->stream) {
    return;
  }
  // Everything that had to arrive has been acknowledged.
  state_->context.TryCancel();
  state_->reader.join();
}

bool LeaseStream::send(const v1::AgentMessage& message) {
  const std::lock_guard lock(state_->write_mutex);
  return state_->write(message);
}

std::uint64_t LeaseStream::send_numbered(v1::AgentMessage message) {
  const std::lock_guard lock(state_->write_mutex);
  const std::uint64_t sequence = ++state_->last_sequence;
  message.set_sequence(sequence);
  {
    const std::lock_guard inner(state_->mutex);
    state_->awaited[sequence];
  }
  if (!state_->write(message)) {
    throw Error(ErrorCode::Aborted, "lease", "the stream to the daemon is broken");
  }
  return sequence;
}

v1::Ack LeaseStream::wait_for(std::uint64_t sequence, const JobStop& stop) {
  std::optional<std::chrono::steady_clock::time_point> until;
  std::unique_lock lock(state_->mutex);
  std::optional<v1::Ack>& ack = state_->awaited.at(sequence);
  while (!ack) {
    if (state_->broken) {
      throw Error(ErrorCode::Aborted, "lease", *state_->broken);
    }
    state_->changed.wait_for(lock, kAckPoll);
    const JobStop::Kind kind = stop.kind();
    if (kind == JobStop::Kind::None) {
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!until) {
      until = now + kGrace;
    }
    if (kind == JobStop::Kind::Drop || now > *until) {
      stop.check();
    }
  }
  v1::Ack result = *std::move(ack);
  state_->awaited.erase(sequence);
  return result;
}

void LeaseStream::forget(std::uint64_t sequence) {
  const std::lock_guard lock(state_->mutex);
  state_->awaited.erase(sequence);
}

std::optional<std::string> LeaseStream::fetch_cubin(const Digest& digest, std::size_t max_bytes) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  v1::GetArtifactRequest request;
  request.set_digest(bytes_of(digest));
  const auto reader = state_->cubind->GetArtifact(&context, request);
  std::string compressed;
  v1::ArtifactChunk chunk;
  while (reader->Read(&chunk)) {
    compressed += chunk.data();
  }
  const grpc::Status status = reader->Finish();
  if (status.error_code() == grpc::StatusCode::NOT_FOUND ||
      status.error_code() == grpc::StatusCode::DATA_LOSS) {
    return std::nullopt;
  }
  if (!status.ok()) {
    throw state_->call_error("GetArtifact", status);
  }
  std::string cubin = zstd_decompress(compressed, max_bytes);
  if (Digest::of(cubin) != digest) {
    return std::nullopt;
  }
  return cubin;
}

void LeaseStream::put_artifact(const v1::ArtifactInfo& info, const std::string& zstd_cubin) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  v1::PutArtifactReply reply;
  const auto writer = state_->agents->PutArtifact(&context, &reply);
  for (std::size_t at = 0; at < zstd_cubin.size(); at += kChunkBytes) {
    v1::ArtifactChunk chunk;
    if (at == 0) {
      *chunk.mutable_info() = info;
    }
    chunk.set_data(zstd_cubin.substr(at, kChunkBytes));
    if (!writer->Write(chunk)) {
      break;
    }
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!status.ok()) {
    throw state_->call_error("PutArtifact", status);
  }
}

std::optional<std::string> LeaseStream::broken() const {
  const std::lock_guard lock(state_->mutex);
  return state_->broken;
}

bool LeaseStream::is_refused() const {
  const std::lock_guard lock(state_->mutex);
  return state_->refused;
}

}  // namespace cubind
