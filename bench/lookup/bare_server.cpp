// The least that a gRPC server can do for GetVariant: it ignores the request and answers one constant
// message. usage: lookup_bare_server SOCKET REPLY_BYTES
#include <grpcpp/grpcpp.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "schemas/cubind.grpc.pb.h"

namespace {

using Service = cubind::v1::Cubind::WithRawCallbackMethod_GetVariant<cubind::v1::Cubind::Service>;

class BareService final : public Service {
 public:
  explicit BareService(std::size_t reply_bytes) : reply_(std::string(reply_bytes, 'x')) {}

  grpc::ServerUnaryReactor* GetVariant(grpc::CallbackServerContext* call, const grpc::ByteBuffer*,
                                       grpc::ByteBuffer* reply) override {
    *reply = grpc::ByteBuffer(&reply_, 1);
    grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const grpc::Slice reply_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: lookup_bare_server SOCKET REPLY_BYTES\n", stderr);
    return 2;
  }
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigprocmask(SIG_BLOCK, &end, nullptr);
  BareService service(std::strtoull(argv[2], nullptr, 10));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("unix://") + argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (!server) {
    return 1;
  }
  int signal = 0;
  sigwait(&end, &signal);
  server->Shutdown();
  return 0;
}
