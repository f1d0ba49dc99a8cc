// A daemon that also listens on TCP, for the holders of some tokens.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "access/token_file.hpp"
#include "tests/service/server/any_call.hpp"
#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {

struct TeamDaemon : DaemonFixture {
  TeamDaemon() {
    config().tokens = folder() / "tokens.json";
    write_token_file(config().tokens, {});
    config().listen = "127.0.0.1:0";
    config().insecure = true;
    start_again();
  }

  void start_again() {
    restart();
    channel = grpc::CreateChannel("127.0.0.1:" + std::to_string(port()), grpc::InsecureChannelCredentials());
  }

  /// The text of a new token, once the daemon accepts it.
  std::string issue(Token token) {
    const NewToken issued = issue_token(std::move(token));
    tokens.push_back(issued.token);
    write_token_file(config().tokens, tokens);
    eventually(
        [&] { return call("GetStatus", issued.text).error_code() != grpc::StatusCode::UNAUTHENTICATED; });
    return issued.text;
  }

  /// The rpc with an empty message.
  grpc::Status call(const std::string& name, const std::string& token) const {
    return test::call(channel, method_of(name), token, "");
  }

  Got get(const v1::GetVariantRequest& request, const std::string& token) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    add(context, token);
    Got got;
    got.status = v1::Cubind::NewStub(channel)->GetVariant(&context, request, &got.reply);
    return got;
  }

  grpc::Status define(const SpecBundle& bundle, const std::string& token) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    add(context, token);
    return define_kernel(*v1::Cubind::NewStub(channel), context, bundle);
  }

  static void add(grpc::ClientContext& context, const std::string& token) {
    if (!token.empty()) {
      context.AddMetadata("authorization", "Bearer " + token);
    }
  }

  std::shared_ptr<grpc::Channel> channel;
  std::vector<Token> tokens;
};

}  // namespace cubind::test
