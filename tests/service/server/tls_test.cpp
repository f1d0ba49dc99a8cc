// --listen with TLS: whom each end trusts, and certificates that change.
#include <catch2/catch.hpp>

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <cstdlib>

#include "access/token_file.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "connect/channel.hpp"
#include "tests/service/server/any_call.hpp"
#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

struct Certificate {
  std::filesystem::path certificate, key;
};

/// Signed by itself: it is its own CA.
Certificate make_certificate(const std::filesystem::path& folder, const std::string& name) {
  Certificate made{folder / (name + ".pem"), folder / (name + ".key")};
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=" + name +
      " -addext subjectAltName=IP:127.0.0.1 -keyout " + made.key.string() + " -out " +
      made.certificate.string() + " 2>/dev/null";
  REQUIRE(std::system(command.c_str()) == 0);
  return made;
}

struct TlsDaemon : DaemonFixture {
  TlsDaemon() : own(make_certificate(folder(), "daemon")) {
    const NewToken issued = issue_token({.name = "alice", .roles = {CallerRole::Reader}});
    config().tokens = folder() / "tokens.json";
    write_token_file(config().tokens, {issued.token});
    secrets.token_file = folder() / "token";
    write_file_atomic(secrets.token_file, issued.text + "\n", 0600);
    secrets.ca_file = own.certificate;
    config().listen = "127.0.0.1:0";
    config().tls_certificate = own.certificate;
    config().tls_key = own.key;
  }

  std::shared_ptr<grpc::Channel> channel(const ChannelSecrets& with, const std::string& scheme = "tls://") {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return open_channel(scheme + "127.0.0.1:" + std::to_string(port()), arguments, with);
  }

  grpc::Status call(const ChannelSecrets& with, const std::string& scheme = "tls://") {
    const auto channel = this->channel(with, scheme);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    v1::GetStatusReply reply;
    return v1::Cubind::NewStub(channel)->GetStatus(&context, {}, &reply);
  }

  const Certificate own;
  ChannelSecrets secrets;
};

}  // namespace

TEST_CASE("a caller with the daemon's CA and a token is served over TLS and no other") {
  TlsDaemon daemon;
  daemon.restart();
  CHECK(daemon.call(daemon.secrets).ok());
  ChannelSecrets others = daemon.secrets;
  others.ca_file = make_certificate(daemon.folder(), "other").certificate;
  CHECK(daemon.call(others).error_code() == grpc::StatusCode::UNAVAILABLE);
  others = daemon.secrets;
  others.token_in_clear = true;
  CHECK(daemon.call(others, "").error_code() == grpc::StatusCode::UNAVAILABLE);
  others = daemon.secrets;
  others.token_file.clear();
  CHECK(daemon.call(others).error_code() == grpc::StatusCode::UNAUTHENTICATED);
}

TEST_CASE("with a CA for clients a caller needs a certificate of this CA too") {
  TlsDaemon daemon;
  const Certificate client = make_certificate(daemon.folder(), "client");
  daemon.config().tls_client_ca = client.certificate;
  daemon.restart();
  CHECK(daemon.call(daemon.secrets).error_code() == grpc::StatusCode::UNAVAILABLE);
  ChannelSecrets with = daemon.secrets;
  with.client_cert = client.certificate;
  with.client_key = client.key;
  CHECK(daemon.call(with).ok());
  const Certificate strangers = make_certificate(daemon.folder(), "stranger");
  with.client_cert = strangers.certificate;
  with.client_key = strangers.key;
  CHECK(daemon.call(with).error_code() == grpc::StatusCode::UNAVAILABLE);
  with.client_key.clear();
  CHECK_THROWS_WITH(daemon.call(with), Catch::Contains("go together"));
}

TEST_CASE("with a CA for clients no rpc is answered without a certificate of this CA") {
  TlsDaemon daemon;
  const Certificate client = make_certificate(daemon.folder(), "client");
  const Certificate strangers = make_certificate(daemon.folder(), "stranger");
  daemon.config().tls_client_ca = client.certificate;
  daemon.restart();
  ChannelSecrets right = daemon.secrets, wrong = daemon.secrets;
  right.client_cert = client.certificate;
  right.client_key = client.key;
  wrong.client_cert = strangers.certificate;
  wrong.client_key = strangers.key;
  for (const Method method : all_methods()) {
    CAPTURE(method->name());
    const std::string message = message_in(method, "team");
    for (const ChannelSecrets& with : {daemon.secrets, wrong}) {
      CHECK(call(daemon.channel(with), method, "", message).error_code() == grpc::StatusCode::UNAVAILABLE);
    }
    const auto served = call(daemon.channel(right), method, "", message).error_code();
    CHECK((served != grpc::StatusCode::UNAVAILABLE && served != grpc::StatusCode::UNAUTHENTICATED));
  }
}

TEST_CASE("a token is not sent in clear unless that is allowed") {
  TlsDaemon daemon;
  daemon.config().tls_certificate.clear();
  daemon.config().tls_key.clear();
  daemon.config().insecure = true;
  daemon.restart();
  CHECK_THROWS_WITH(daemon.call(daemon.secrets, ""), Catch::Contains("would travel in clear") &&
                                                         Catch::Contains("tls://127.0.0.1") &&
                                                         Catch::Contains("CUBIND_INSECURE_TOKEN=1"));
  ChannelSecrets allowed = daemon.secrets;
  allowed.token_in_clear = true;
  CHECK(daemon.call(allowed, "").ok());
}

TEST_CASE("a certificate that changes is shown to the connections that come later") {
  TlsDaemon daemon;
  daemon.restart();
  const Certificate next = make_certificate(daemon.folder(), "next");
  ChannelSecrets trusts_next = daemon.secrets;
  trusts_next.ca_file = daemon.folder() / "next-ca.pem";
  std::filesystem::copy_file(next.certificate, trusts_next.ca_file);
  CHECK_FALSE(daemon.call(trusts_next).ok());
  std::filesystem::rename(next.key, daemon.own.key);
  std::filesystem::rename(next.certificate, daemon.own.certificate);
  DaemonFixture::eventually([&] { return daemon.call(trusts_next).ok(); });
}

TEST_CASE("a chain with a certificate that is cut off does not start a daemon") {
  TlsDaemon daemon;
  const std::string chain = read_file(daemon.own.certificate);
  write_file_atomic(daemon.own.certificate, chain + chain.substr(0, chain.size() / 2));
  CHECK_THROWS_WITH(daemon.restart(), Catch::Contains("has a certificate that is not whole"));
  write_file_atomic(daemon.own.certificate, chain + chain);
  daemon.restart();
}

TEST_CASE("a key of another certificate does not start a daemon") {
  TlsDaemon daemon;
  daemon.config().tls_key = make_certificate(daemon.folder(), "other").key;
  CHECK_THROWS_WITH(daemon.restart(), Catch::Contains("is not the key of the certificate"));
  daemon.config().tls_key = daemon.own.key;
  daemon.restart();
}

}  // namespace cubind::test
