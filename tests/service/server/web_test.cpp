// The pages that a daemon starts, and the rights with which they ask it.
#include <catch2/catch.hpp>

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.hpp"
#include "connect/channel.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/http_reply.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

int free_port() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

}  // namespace

TEST_CASE("a daemon's pages are served by a process that ends with it") {
  DaemonFixture daemon;
  const int port = free_port();
  daemon.config().web = "127.0.0.1:" + std::to_string(port);
  daemon.config().web_program = bin_dir() / "cubind-web";
  daemon.restart();
  DaemonFixture::eventually([&] { return !http_reply(port, "/").empty(); });
  const std::string page = http_reply(port, "/");
  CHECK_THAT(page, Contains("HTTP/1.1 200 OK") && Contains("What is not used, and why?"));
  CHECK_THAT(http_reply(port, "/job?id=none"), Contains(" 404 ") && Contains("job none"));
  daemon.stop();
  CHECK(http_reply(port, "/").empty());
}

TEST_CASE("an answer without a wait is counted as saved once for a process and stays counted") {
  TunedDaemon daemon;
  v1::GetVariantRequest request = vector_add(4096);
  const std::string cubin = daemon.get(request).reply.artifact().digest();
  request.add_have_artifacts(cubin);
  CHECK(daemon.get(request).status.ok());
  request.clear_have_artifacts();
  request.set_tune(v1::NEVER);  // only looks
  CHECK(daemon.get(request).status.ok());
  const v1::Savings saved = daemon.status().saved();
  CHECK(saved.answers() == 1);
  CHECK(saved.timed() == 1);
  CHECK(saved.tuning_ms() >= 1);
  daemon.restart();
  DaemonFixture::eventually([&] { return daemon.status().saved().answers() == 1; });
  CHECK(daemon.status().saved().tuning_ms() == saved.tuning_ms());
}

TEST_CASE("a training job is listed with its generation to callers of its namespace") {
  TunedDaemon daemon;
  v1::GetVariantRequest request = vector_add(4096);
  request.set_job("llama-7b");
  for (const char* process : {"41", "42", "41"}) {
    grpc::ClientContext context;
    context.AddMetadata("cubind-caller", process);
    v1::GetVariantReply reply;
    CHECK(daemon.stub().GetVariant(&context, request, &reply).ok());
  }
  const v1::GetStatusReply status = daemon.status();
  REQUIRE(status.pinned_size() == 1);
  CHECK(status.pinned(0).processes() == 2);
  CHECK(status.pinned(0).job() == "llama-7b");
  CHECK(status.pinned(0).generation() == status.generation().number());
}

TEST_CASE("a caller on the socket that asks for the role of a reader has no other") {
  DaemonFixture daemon;
  ChannelSecrets secrets;
  secrets.role = "reader";
  const auto stub = v1::Cubind::NewStub(open_channel(daemon.address(), {}, secrets));
  grpc::ClientContext status_call, cancel_call;
  v1::GetStatusReply status;
  v1::CancelJobReply cancelled;
  CHECK(stub->GetStatus(&status_call, {}, &status).ok());
  const grpc::Status refused = stub->CancelJob(&cancel_call, {}, &cancelled);
  CHECK(refused.error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK_THAT(refused.error_message(), Contains("as a reader"));
}

}  // namespace cubind::test
