#include <sched.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "plan/wire.hpp"
#include "schemas/limits.hpp"
#include "tests/service/agent/agent_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/process_tree.hpp"

namespace cubind::test {
namespace {

using std::chrono::seconds;

std::string text(const v1::Configuration& configuration) {
  return to_string(configuration_from_wire(configuration, "configuration"));
}

TEST_CASE("an agent offers the replay device under a class of its own and its toolchains newest first") {
  AgentFixture fixture;
  const auto message = fixture.daemon.hello();
  REQUIRE(message);
  const v1::Hello& hello = message->hello();
  CHECK(hello.protocol() == kAgentProtocol);
  CHECK(hello.oldest_protocol() == kOldestAgentProtocol);
  REQUIRE(hello.devices_size() == 1);
  CHECK(hello.devices(0).uuid().rfind("replay-", 0) == 0);
  CHECK_FALSE(hello.devices(0).facts().replay_table().empty());
  CHECK(hello.no_device_because().empty());
  REQUIRE(hello.toolchains_size() >= 1);
  CHECK(hello.toolchains(0).architectures_size() > 0);
  for (int i = 1; i < hello.toolchains_size(); ++i) {
    CHECK(hello.toolchains(i).major() <= hello.toolchains(i - 1).major());
  }
}

TEST_CASE("a lease ends with the recorded winner and each configuration is compiled once") {
  AgentFixture fixture;
  const v1::JobResult result = fixture.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(text(result.winner()) == "A=4,B=2");
  CHECK(result.provenance().timing().timer() == "replay");
  CHECK(result.provenance().timing().median_us() == Approx(10).epsilon(0.01));
  CHECK(fixture.stored().artifacts_size() == 12);
  std::uint32_t calls = 0;
  for (const auto& message : fixture.daemon.messages()) {
    calls = std::max(calls, message.progress().nvrtc_calls());
  }
  CHECK(calls == 12);
}

TEST_CASE("a job that is granted again with what is stored in pages measures nothing twice") {
  AgentFixture fixture;
  v1::LeaseGrant lease = fixture.lease();
  fixture.grant(lease);
  const auto first = fixture.daemon.result();
  REQUIRE(first);
  const v1::Batch known = fixture.stored();
  fixture.daemon.forget();
  lease.set_lease_id("lease-again");
  v1::LeaseGrant page;
  page.set_lease_id(lease.lease_id());
  page.set_more(true);
  *page.mutable_trials() = known.trials();
  *page.mutable_blocks() = known.blocks();
  fixture.grant(page);
  *lease.mutable_verifications() = known.verifications();
  *lease.mutable_artifacts() = known.artifacts();
  fixture.grant(lease);
  const auto second = fixture.daemon.result();
  REQUIRE(second);
  CHECK(second->result().winner_trial() == first->result().winner_trial());
  CHECK(fixture.stored().blocks_size() == 0);
}

TEST_CASE("an idle agent offers its free memory again when it has changed noticeably and not before") {
  AgentFixture fixture(R"({"free_memory_bytes": 1000000000})", {"--memory-poll-ms", "20"});
  REQUIRE(fixture.daemon.hello());
  const auto offers = [](const auto& message) { return message.has_devices(); };
  fixture.set_faults(R"({"free_memory_bytes": 1010000000})");
  CHECK_FALSE(fixture.daemon.find(offers, seconds(1)));
  fixture.set_faults(R"({"free_memory_bytes": 2000000000})");
  const auto offer = fixture.daemon.find(offers);
  REQUIRE(offer);
  CHECK(offer->devices().devices(0).trial_memory_bytes() == 1'800'000'000);
  fixture.daemon.forget();
  CHECK_FALSE(fixture.daemon.find(offers, seconds(1)));
}

TEST_CASE("an agent that must never tune offers no device and says so") {
  AgentFixture fixture("{}", {"--tune-when", "never"});
  const auto hello = fixture.daemon.hello();
  REQUIRE(hello);
  CHECK(hello->hello().devices_size() == 0);
  CHECK(hello->hello().no_device_because() == "--tune-when never gives no consent to measure");
  CHECK(hello->hello().toolchains_size() >= 1);
}

std::vector<ProcessId> compilers(pid_t agent) {
  std::vector<ProcessId> all = descendants(agent);
  std::erase_if(all, [](const ProcessId& one) {
    return one.command.find("cubind-worker compile") == std::string::npos;
  });
  return all;
}

// Waits until there are so many, and a while for others.
std::vector<ProcessId> compilers_of(pid_t agent, std::size_t wanted) {
  eventually([&] { return compilers(agent).size() == wanted; });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return compilers(agent);
}

// The first that did not exist before; absent: none came.
std::optional<ProcessId> next_compiler(pid_t agent, const std::vector<ProcessId>& before) {
  const auto limit = std::chrono::steady_clock::now() + seconds(30);
  while (std::chrono::steady_clock::now() < limit) {
    for (const ProcessId& one : compilers(agent)) {
      if (std::ranges::find(before, one.pid, &ProcessId::pid) == before.end()) {
        return one;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

// Each NVRTC was asked what it is, and that of the device has a second one.
std::size_t compilers_before_jobs(const v1::Hello& hello) {
  return static_cast<std::size_t>(hello.toolchains_size()) + static_cast<std::size_t>(hello.devices_size());
}

TEST_CASE("an agent that offers a device starts its compilers before a job comes") {
  AgentFixture fixture("{}", {"--tune-when", GENERATE("idle", "never")});
  const auto hello = fixture.daemon.hello();
  REQUIRE(hello);
  const std::size_t wanted = compilers_before_jobs(hello->hello());
  CHECK(compilers_of(fixture.agent->pid(), wanted).size() == wanted);
}

TEST_CASE("compilers of a job that no caller waits for are in the idle class until one does") {
  AgentFixture fixture;
  v1::LeaseGrant lease = fixture.lease();
  lease.set_background(true);
  lease.mutable_spec()->mutable_files(1)->set_content(R"(
    template <int D, int X> struct Tree { static const int v = Tree<D - 1, 2 * X>::v + Tree<D - 1, 2 * X + 1>::v; };
    template <int X> struct Tree<0, X> { static const int v = X & 1; };
    template <typename T, int A, int B> __global__ void scale(const T*, T* y, long long) { *y = Tree<26, A>::v; })");
  const std::size_t ready = compilers_before_jobs(fixture.daemon.hello()->hello());
  const std::vector<ProcessId> before = compilers_of(fixture.agent->pid(), ready);
  fixture.grant(lease);
  const auto compiler = next_compiler(fixture.agent->pid(), before);
  REQUIRE(compiler);
  CHECK(sched_getscheduler(compiler->pid) == SCHED_IDLE);
  v1::DaemonMessage message;
  message.mutable_awaited()->set_lease_id(lease.lease_id());
  fixture.daemon.send(message);
  CHECK(wait_until_gone({*compiler}).empty());  // another one goes on
}

TEST_CASE("a lease to compile uploads the named configurations and measures nothing") {
  AgentFixture fixture;
  v1::LeaseGrant lease = fixture.lease();
  lease.set_kind(v1::Job::COMPILE_WINNER);
  lease.clear_gpu_uuid();
  lease.set_architecture("sm_80");
  to_wire(Configuration{{{"A", 2}, {"B", 3}}}, *lease.add_listed());
  fixture.grant(lease);
  const auto result = fixture.daemon.result();
  REQUIRE(result);
  CHECK(result->result().status() == v1::JobResult::DONE);
  const v1::Batch stored = fixture.stored();
  REQUIRE(stored.artifacts_size() == 1);
  CHECK(stored.artifacts(0).info().architecture() == "sm_80");
  CHECK(stored.artifacts(0).entries(0) == "scale<float, 2, 3>");
  CHECK(stored.blocks_size() == 0);
}

TEST_CASE("a job whose arguments do not fit the compiled entry fails before anything is launched") {
  AgentFixture fixture;
  v1::LeaseGrant lease = fixture.lease();
  std::string& source = *lease.mutable_spec()->mutable_files(1)->mutable_content();
  const std::size_t at = source.find("long long n)");
  REQUIRE(at != std::string::npos);
  source.replace(at, 9, "float");
  fixture.grant(lease);
  const auto result = fixture.daemon.result();
  REQUIRE(result);
  CHECK(result->result().status() == v1::JobResult::FAILED);
  CHECK(result->result().error() ==
        lease.spec().file() +
            " /launches/0/arguments/2: N is a scalar i64 (long long), the entry's parameter is float");
  CHECK(fixture.stored().blocks_size() == 0);
  CHECK(fixture.stored().verifications_size() == 0);
}

TEST_CASE("a check answers with the compiler's log and stores nothing") {
  AgentFixture fixture;
  const v1::LeaseGrant lease = fixture.lease();
  v1::DaemonMessage message;
  v1::CheckOrder& order = *message.mutable_check();
  order.set_id("check-1");
  *order.mutable_spec() = lease.spec();
  order.mutable_spec()->mutable_files(1)->set_content(
      "template <typename T, int A, int B> __global__ void scale(oops);");
  *order.mutable_problem() = lease.problem();
  to_wire(Configuration{{{"A", 1}, {"B", 1}}}, *order.mutable_configuration());
  order.set_architecture("sm_90");
  fixture.daemon.send(message);
  const auto answer = fixture.daemon.find([](const auto& got) { return got.has_check(); });
  REQUIRE(answer);
  CHECK(answer->check().outcome() == v1::COMPILE);
  CHECK(answer->check().log().find("oops") != std::string::npos);
  CHECK(fixture.stored().artifacts_size() == 0);
}

}  // namespace
}  // namespace cubind::test
