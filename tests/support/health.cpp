#include "tests/support/health.hpp"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>

namespace cubind::test {

std::optional<int> health_of(const std::string& address) {
  // A connection of its own: a shared one waits before it tries a server again that was missing.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  grpc::GenericStub stub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
  grpc::CompletionQueue queue;
  const grpc::Slice nothing;  // an empty HealthCheckRequest: the whole server
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer reply;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  grpc::Slice answer;
  if (!status.ok() || !reply.DumpToSingleSlice(&answer).ok()) {
    return std::nullopt;
  }
  // Field 1, a varint.
  return answer.size() == 2 && answer.begin()[0] == 0x08 ? answer.begin()[1] : 0;
}

}  // namespace cubind::test
