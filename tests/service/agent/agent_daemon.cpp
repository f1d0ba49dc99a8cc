#include "tests/service/agent/agent_daemon.hpp"

#include <grpcpp/grpcpp.h>

#include "schemas/agent.grpc.pb.h"
#include "schemas/cubind.grpc.pb.h"

namespace cubind::test {

using Stream = grpc::ServerReaderWriter<v1::DaemonMessage, v1::AgentMessage>;

struct AgentDaemon::Server final : v1::AgentService::Service {
  explicit Server(AgentDaemon& daemon) : owner(daemon) {}

  grpc::Status Serve(grpc::ServerContext* context, Stream* stream) override {
    {
      const std::lock_guard lock(mutex);
      current = stream;
      current_context = context;
    }
    v1::AgentMessage message;
    while (stream->Read(&message)) {
      const std::lock_guard lock(mutex);
      if (!refusal.empty()) {
        current = nullptr;
        current_context = nullptr;
        return {grpc::StatusCode::FAILED_PRECONDITION, std::exchange(refusal, "")};
      }
      messages.push_back(message);
      v1::DaemonMessage answer;
      if (message.has_hello()) {
        answer.mutable_welcome()->set_daemon_version("test");
        answer.mutable_welcome()->set_heartbeat_ms(200);
      }
      if (message.sequence() != 0) {
        answer.mutable_ack()->set_sequence(message.sequence());
      }
      if (answer.body_case() != v1::DaemonMessage::BODY_NOT_SET && !owner.silent) {
        stream->Write(answer);
      }
      changed.notify_all();
    }
    const std::lock_guard lock(mutex);
    current = nullptr;
    current_context = nullptr;
    return grpc::Status::OK;
  }

  // The artifacts that the daemon does not give.
  struct Artifacts final : v1::Cubind::Service {
    explicit Artifacts(AgentDaemon& daemon) : owner(daemon) {}
    grpc::Status GetArtifact(grpc::ServerContext*, const v1::GetArtifactRequest*,
                             grpc::ServerWriter<v1::ArtifactChunk>*) override {
      if (owner.artifact_refusal.empty()) {
        return {grpc::StatusCode::NOT_FOUND, "no such artifact"};
      }
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, owner.artifact_refusal};
    }
    AgentDaemon& owner;
  };

  AgentDaemon& owner;
  Artifacts artifacts{owner};
  std::string refusal;  // guarded by mutex
  std::mutex mutex;     // also held while a message is written: gRPC takes one at a time
  std::condition_variable changed;
  Stream* current = nullptr;
  grpc::ServerContext* current_context = nullptr;
  std::vector<v1::AgentMessage> messages;
  std::unique_ptr<grpc::Server> server;
};

AgentDaemon::AgentDaemon() : server_(std::make_unique<Server>(*this)) { come_back(); }

void AgentDaemon::come_back() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address(), grpc::InsecureServerCredentials());
  builder.AddListeningPort(tcp_address(), grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(server_.get());
  builder.RegisterService(&server_->artifacts);
  server_->server = builder.BuildAndStart();
}

AgentDaemon::~AgentDaemon() { leave(); }

void AgentDaemon::leave() {
  hang_up();
  server_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
}

std::string AgentDaemon::address() const { return "unix://" + (folder_.path() / "daemon.sock").string(); }

void AgentDaemon::send(const v1::DaemonMessage& message) {
  const std::lock_guard lock(server_->mutex);
  if (server_->current != nullptr) {
    server_->current->Write(message);
  }
}

void AgentDaemon::hang_up() {
  const std::lock_guard lock(server_->mutex);
  if (server_->current_context != nullptr) {
    server_->current_context->TryCancel();
  }
}

void AgentDaemon::refuse_next(const std::string& reason) {
  const std::lock_guard lock(server_->mutex);
  server_->refusal = reason;
}

std::optional<v1::AgentMessage> AgentDaemon::find(const std::function<bool(const v1::AgentMessage&)>& fits,
                                                  std::chrono::seconds limit) {
  std::unique_lock lock(server_->mutex);
  std::optional<v1::AgentMessage> found;
  server_->changed.wait_for(lock, limit, [&] {
    for (const v1::AgentMessage& message : server_->messages) {
      if (!found && fits(message)) {
        found = message;
      }
    }
    return found.has_value();
  });
  return found;
}

std::vector<v1::AgentMessage> AgentDaemon::messages() const {
  const std::lock_guard lock(server_->mutex);
  return server_->messages;
}

void AgentDaemon::forget() {
  const std::lock_guard lock(server_->mutex);
  server_->messages.clear();
}

}  // namespace cubind::test
