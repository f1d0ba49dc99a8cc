// What is served after the agent's toolkit has been upgraded.
#include <catch2/catch.hpp>
#include <future>

#include "plan/answer_wire.hpp"
#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

v1::Hello hello_with_toolchain(const std::string& name, std::uint32_t minor) {
  v1::Hello hello = compiling_hello("with-" + std::to_string(minor));
  hello.mutable_toolchains(0)->set_name(name);
  hello.mutable_toolchains(0)->set_minor(minor);
  hello.mutable_toolchains(0)->set_nvrtc_digest(bytes_of(fake_toolchain(name).nvrtc));
  hello.mutable_toolchains(0)->set_builtins_digest(bytes_of(fake_toolchain(name).builtins));
  return hello;
}

std::vector<int> departures(const Got& got) {
  const auto& wire = got.reply.provenance().departures();
  return {wire.begin(), wire.end()};
}

/// A daemon whose only agent compiled the default of vector_add and has left; its successor has `today`.
struct UpgradedDaemon : DaemonFixture {
  explicit UpgradedDaemon(const v1::Hello& today) {
    request.set_tune(v1::NEVER);
    {
      FakeAgent before(address(), hello_with_toolchain("nvrtc 13.0", 0));
      auto call = std::async(std::launch::async, [&] { return get(request); });
      REQUIRE(before.compile(before.wait_for_lease()));
      REQUIRE(departures(call.get()) == std::vector<int>{v1::DEFAULT_CONFIGURATION});
    }
    eventually([&] { return status().agents() == 0; });
    agent = std::make_unique<FakeAgent>(address(), today);
    eventually([&] { return status().agents() == 1; });  // the welcome is sent before the fleet knows it
    request.set_compile_wait_ms(100);
  }
  v1::GetVariantRequest request = vector_add(4096);
  std::unique_ptr<FakeAgent> agent;
};

TEST_CASE("a default of an earlier toolchain answers as stale until today's toolchain has compiled it") {
  UpgradedDaemon daemon(hello_with_toolchain("nvrtc 13.1", 1));
  const Got stale = daemon.get(daemon.request);
  REQUIRE(stale.status.ok());
  CHECK(departures(stale) == std::vector<int>{v1::STALE, v1::DEFAULT_CONFIGURATION});
  CHECK(stale.reply.artifact().toolchain() == "nvrtc 13.0");
  const v1::LeaseGrant lease = daemon.agent->wait_for_lease();
  CHECK_THAT(stale.reply.why(), Contains("earlier toolchain") && Contains(lease.job_id()));
  REQUIRE(daemon.agent->compile(lease, "nvrtc 13.1"));
  const Got today = daemon.get(daemon.request);
  CHECK(departures(today) == std::vector<int>{v1::DEFAULT_CONFIGURATION});
  CHECK(today.reply.artifact().toolchain() == "nvrtc 13.1");
  CHECK(daemon.jobs(true).size() == 2);
}

TEST_CASE("libraries that were replaced under the same version make a default stale too") {
  v1::Hello hello = hello_with_toolchain("nvrtc 13.0", 0);
  hello.mutable_toolchains(0)->set_nvrtc_digest(bytes_of(Digest::of("of a later patch")));
  UpgradedDaemon daemon(hello);
  CHECK(departures(daemon.get(daemon.request)) == std::vector<int>{v1::STALE, v1::DEFAULT_CONFIGURATION});
}

TEST_CASE("a stale default whose compile failed answers on and is not compiled for every call") {
  UpgradedDaemon daemon(hello_with_toolchain("nvrtc 13.1", 1));
  REQUIRE(daemon.get(daemon.request).status.ok());
  REQUIRE(daemon.agent->fail(daemon.agent->wait_for_lease(), "error: expected a ';'"));
  const Got got = daemon.get(daemon.request);
  CHECK(departures(got) == std::vector<int>{v1::STALE, v1::DEFAULT_CONFIGURATION});
  CHECK_THAT(got.reply.why(), Contains("was not compiled: error: expected a ';'"));
  CHECK(daemon.jobs(true).size() == 2);
}

TEST_CASE("a caller that does not accept stale answers gets the default of today's toolchain alone") {
  UpgradedDaemon daemon(hello_with_toolchain("nvrtc 13.1", 1));
  daemon.request.set_restrict_accept(true);
  daemon.request.add_accept(v1::DEFAULT_CONFIGURATION);
  CHECK(daemon.get(daemon.request).status.error_code() == grpc::StatusCode::UNAVAILABLE);
  REQUIRE(daemon.agent->compile(daemon.agent->wait_for_lease(), "nvrtc 13.1"));
  CHECK(daemon.get(daemon.request).reply.artifact().toolchain() == "nvrtc 13.1");
}

TEST_CASE("a locked question whose measured bytes are gone gets no others from today's toolchain") {
  DaemonFixture daemon;
  {
    AutoAgent before(daemon.address(), hello_with(h200_facts()));
    daemon.tune(tune_vector_add({4096}));
  }
  v1::GetVariantRequest locked = vector_add(4096);
  *locked.mutable_locked() = daemon.get(locked).reply.provenance().generation();
  CHECK(daemon.get(locked).status.ok());
  daemon.restart([&] { daemon.damage("DELETE FROM blobs"); });
  FakeAgent today(daemon.address(), hello_with_toolchain("nvrtc 13.1", 1));
  auto call = std::async(std::launch::async, [&] { return daemon.get(locked); });
  REQUIRE(today.compile(today.wait_for_lease(), "nvrtc 13.1"));
  const Got got = call.get();
  CHECK(got.status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(got.status.error_message(), Contains("is not stored, and no agent made the same bytes"));
}

}  // namespace
}  // namespace cubind::test
