// The least that a gRPC server can do for GetVariant: it ignores the request and answers one constant
// message. usage: lookup_bare_server ADDRESS REPLY_BYTES MESSAGES [CERTIFICATE KEY]
//
// With MESSAGES above 1 it answers any of so many constant messages, drawn at random: what it costs to send
// as many bytes out of RAM instead of out of the processor's cache. With a certificate it has the daemon's
// TLS, and ignores tokens.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "schemas/cubind.grpc.pb.h"
#include "server/tls_credentials.hpp"

namespace {

using Service = cubind::v1::Cubind::WithRawCallbackMethod_GetVariant<cubind::v1::Cubind::Service>;

class BareService final : public Service {
 public:
  BareService(std::size_t reply_bytes, std::size_t messages) {
    for (std::size_t i = 0; i < messages; ++i) {
      replies_.emplace_back(std::string(reply_bytes, 'x'));
    }
  }

  grpc::ServerUnaryReactor* GetVariant(grpc::CallbackServerContext* call, const grpc::ByteBuffer*,
                                       grpc::ByteBuffer* reply) override {
    *reply = grpc::ByteBuffer(replies_.size() == 1 ? &replies_.front() : &any_reply(), 1);
    grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const grpc::Slice& any_reply() const {
    thread_local std::minstd_rand random(std::random_device{}());
    return replies_[random() % replies_.size()];
  }

  std::vector<grpc::Slice> replies_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) {
    std::fputs("usage: lookup_bare_server ADDRESS REPLY_BYTES MESSAGES [CERTIFICATE KEY]\n", stderr);
    return 2;
  }
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigprocmask(SIG_BLOCK, &end, nullptr);
  const std::size_t messages = std::strtoull(argv[3], nullptr, 10);
  BareService service(std::strtoull(argv[2], nullptr, 10), std::max<std::size_t>(messages, 1));
  // As the daemon's.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(
      argv[1], argc == 6 ? cubind::tls_credentials({.certificate = argv[4], .key = argv[5], .client_ca = {}})
                         : grpc::InsecureServerCredentials());
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
