#include <signal.h>

#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/subprocess.hpp"
#include "tests/service/agent/agent_daemon.hpp"
#include "tests/service/agent/replayed_kernel.hpp"
#include "tests/support/paths.hpp"
#include "tuner/agent/lease_stream.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

std::vector<std::string> environment(const std::vector<std::string>& more) {
  std::vector<std::string> result = more;
  for (char** entry = environ; *entry != nullptr; ++entry) result.emplace_back(*entry);
  return result;
}

// An agent that replays the table, and the daemon that it works for.
struct AgentFixture {
  explicit AgentFixture(const std::string& faults = "{}", std::vector<std::string> more = {}) {
    write_file_atomic(folder.path() / "table.json", replayed_table());
    write_file_atomic(folder.path() / "faults.json", faults);
    SubprocessOptions options;
    options.program = (bin_dir() / "cubind-agent").string();
    options.arguments = {
        "--address",         daemon.address(), "--replay",       (folder.path() / "table.json").string(),
        "--replay-faults",   faults_file(),    "--compile-jobs", "2",
        "--run-deadline-ms", "1000",           "--idle-poll-ms", "50"};
    options.arguments.insert(options.arguments.end(), more.begin(), more.end());
    options.environment = environment({});
    agent.emplace(Subprocess::spawn(options));
  }

  std::string faults_file() const { return (folder.path() / "faults.json").string(); }

  v1::LeaseGrant lease() {
    const auto hello = daemon.hello();
    REQUIRE(hello);
    REQUIRE(hello->hello().devices_size() == 1);
    return replayed_lease(hello->hello().devices(0));
  }
  void grant(const v1::LeaseGrant& lease) {
    v1::DaemonMessage message;
    *message.mutable_lease() = lease;
    daemon.send(message);
  }
  v1::JobResult run() {
    grant(lease());
    const auto result = daemon.result();
    REQUIRE(result);
    return result->result();
  }
  // Of the whole conversation so far.
  v1::Batch stored() const {
    v1::Batch all;
    for (const v1::AgentMessage& message : daemon.messages()) {
      if (message.has_batch()) all.MergeFrom(message.batch());
    }
    return all;
  }
  void wait_for_phase(const std::string& phase) {
    REQUIRE(daemon.find([&](const auto& message) { return message.progress().phase() == phase; }));
  }

  TempDir folder;
  AgentDaemon daemon;
  std::optional<Subprocess> agent;
};

std::string text(const v1::Configuration& configuration) {
  return to_string(configuration_from_wire(configuration, "configuration"));
}

constexpr char kSlow[] = R"({"pace_us": 20000})";

TEST_CASE("an agent offers the replay device under a class of its own and its toolchains newest first") {
  AgentFixture fixture;
  const auto message = fixture.daemon.hello();
  REQUIRE(message);
  const v1::Hello& hello = message->hello();
  CHECK(hello.protocol() == 1);
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
  CHECK(result.provenance().evidence() == v1::REPLAYED);
  CHECK(result.provenance().timer() == "replay");
  CHECK(result.provenance().median_us() == Approx(10).epsilon(0.01));
  CHECK(fixture.stored().artifacts_size() == 12);
  std::uint32_t calls = 0;
  for (const auto& message : fixture.daemon.messages())
    calls = std::max(calls, message.progress().nvrtc_calls());
  CHECK(calls == 12);
}

TEST_CASE("every message of a lease names it and repeats its fencing number") {
  AgentFixture fixture;
  fixture.run();
  for (const v1::AgentMessage& message : fixture.daemon.messages()) {
    const bool is_of_no_lease = message.has_heartbeat() && message.lease_id().empty();
    if (message.has_hello() || is_of_no_lease) continue;
    CHECK(message.lease_id() == "lease-1");
    CHECK(message.fence() == 7);
  }
}

TEST_CASE("no batch is sent before the one before it was acknowledged") {
  AgentFixture fixture;
  const v1::LeaseGrant lease = fixture.lease();
  fixture.daemon.silent = true;
  fixture.grant(lease);
  REQUIRE(fixture.daemon.find([](const auto& message) { return message.has_batch(); }));
  std::this_thread::sleep_for(milliseconds(500));
  int batches = 0;
  for (const auto& message : fixture.daemon.messages()) batches += message.has_batch() ? 1 : 0;
  CHECK(batches == 1);
}

TEST_CASE("a job that is granted again with what is stored measures nothing twice") {
  AgentFixture fixture;
  v1::LeaseGrant lease = fixture.lease();
  fixture.grant(lease);
  const auto first = fixture.daemon.result();
  REQUIRE(first);
  const v1::Batch known = fixture.stored();
  fixture.daemon.forget();
  *lease.mutable_trials() = known.trials();
  *lease.mutable_blocks() = known.blocks();
  *lease.mutable_verifications() = known.verifications();
  *lease.mutable_artifacts() = known.artifacts();
  fixture.grant(lease);
  const auto second = fixture.daemon.result();
  REQUIRE(second);
  CHECK(second->result().winner_trial() == first->result().winner_trial());
  CHECK(fixture.stored().blocks_size() == 0);
}

TEST_CASE("SIGTERM hands the lease back within five seconds") {
  AgentFixture fixture(kSlow);
  fixture.grant(fixture.lease());
  fixture.wait_for_phase("screening");
  const auto began = steady_clock::now();
  fixture.agent->send_signal(SIGTERM);
  const auto result = fixture.daemon.result(seconds(5));
  REQUIRE(result);
  CHECK(result->result().status() == v1::JobResult::INTERRUPTED);
  const auto ended = fixture.agent->wait_until(began + seconds(5));
  REQUIRE(ended);
  CHECK(ended->code == 0);
}

TEST_CASE("SIGTERM ends an agent whose daemon is not there") {
  const TempDir folder;
  write_file_atomic(folder.path() / "table.json", replayed_table());
  SubprocessOptions options;
  options.program = (bin_dir() / "cubind-agent").string();
  options.arguments = {"--address", "unix://" + (folder.path() / "no.sock").string(), "--replay",
                       (folder.path() / "table.json").string()};
  options.environment = environment({});
  Subprocess agent = Subprocess::spawn(options);
  std::this_thread::sleep_for(seconds(2));  // it has begun to wait for its daemon
  agent.send_signal(SIGTERM);
  const auto ended = agent.wait_until(steady_clock::now() + seconds(5));
  REQUIRE(ended);
  CHECK(ended->code == 0);
}

TEST_CASE("a draining daemon gets its leases back and the agent stays") {
  AgentFixture fixture(kSlow);
  fixture.grant(fixture.lease());
  fixture.wait_for_phase("screening");
  v1::DaemonMessage drain;
  drain.mutable_drain();
  fixture.daemon.send(drain);
  const auto result = fixture.daemon.result(seconds(5));
  REQUIRE(result);
  CHECK(result->result().status() == v1::JobResult::INTERRUPTED);
  CHECK_FALSE(fixture.agent->try_wait());
}

TEST_CASE("a lease that was ended is dropped at once and nothing more is sent for it") {
  AgentFixture fixture(kSlow);
  fixture.grant(fixture.lease());
  fixture.wait_for_phase("screening");
  v1::DaemonMessage end;
  end.mutable_end_lease()->set_lease_id("lease-1");
  fixture.daemon.send(end);
  std::this_thread::sleep_for(milliseconds(500));
  fixture.daemon.forget();
  CHECK_FALSE(
      fixture.daemon.find([](const auto& message) { return !message.lease_id().empty(); }, seconds(1)));
}

TEST_CASE("an agent whose stream breaks drops its jobs and comes back") {
  AgentFixture fixture(kSlow);
  fixture.grant(fixture.lease());
  fixture.wait_for_phase("screening");
  fixture.daemon.hang_up();
  std::this_thread::sleep_for(milliseconds(300));
  fixture.daemon.forget();
  CHECK(fixture.daemon.hello());
  CHECK_FALSE(fixture.daemon.find([](const auto& message) { return message.has_result(); }, seconds(1)));
}

TEST_CASE("an agent that is sent what is no message comes back") {
  AgentFixture fixture;
  REQUIRE(fixture.daemon.hello());
  fixture.daemon.forget();
  v1::DaemonMessage message;
  message.mutable_end_lease()->set_lease_id("\xff");  // not UTF-8: protobuf writes it and does not read it
  fixture.daemon.send(message);
  CHECK(fixture.daemon.find([](const auto& got) { return got.has_hello(); }, seconds(20)));
}

// A stream of its own, without an agent around it.
struct StreamFixture {
  StreamFixture() { daemon.artifact_refusal = "the disk is full"; }
  // Why the stream broke; waits for it.
  std::optional<std::string> end() {
    const auto until = steady_clock::now() + seconds(20);
    while (!stream.broken() && steady_clock::now() < until) std::this_thread::sleep_for(milliseconds(10));
    return stream.broken();
  }
  ErrorCode code_of_fetch() {
    try {
      stream.fetch_cubin(Digest::of("cubin"), 1000);
    } catch (const Error& error) {
      told = error.what();
      return error.code();
    }
    FAIL("nothing was thrown");
    return ErrorCode::Internal;
  }

  AgentDaemon daemon;
  std::string told;  // the words of the last error
  LeaseStream stream{daemon.address(), v1::Hello(), [](const v1::DaemonMessage&) {}};
};

TEST_CASE("a stream that the daemon has ended tells the daemon's reason") {
  StreamFixture fixture;
  fixture.daemon.refuse_next("protocol 1 is too old");
  fixture.stream.start();
  CHECK(fixture.end() == "protocol 1 is too old");
}

TEST_CASE("an artifact that the daemon refuses is told with its reason and the lease is not lost") {
  StreamFixture fixture;
  fixture.stream.start();
  REQUIRE(fixture.daemon.hello());
  CHECK(fixture.code_of_fetch() == ErrorCode::FailedPrecondition);
  CHECK(fixture.told == "GetArtifact: the disk is full");
  CHECK_FALSE(fixture.stream.broken());
}

TEST_CASE("an artifact that does not come over a broken stream means that the lease is lost") {
  StreamFixture fixture;
  fixture.stream.start();
  REQUIRE(fixture.daemon.hello());
  fixture.daemon.hang_up();
  REQUIRE(fixture.end());
  CHECK(fixture.code_of_fetch() == ErrorCode::Aborted);
}

TEST_CASE("heartbeats renew a lease while nothing else is said") {
  AgentFixture fixture;
  write_file_atomic(fixture.folder.path() / "faults.json", R"({"pace_us": 1000000})");
  fixture.grant(fixture.lease());
  CHECK(fixture.daemon.find(
      [](const auto& message) { return message.has_heartbeat() && !message.lease_id().empty(); },
      seconds(20)));
}

TEST_CASE("an agent without a lease says that it is there") {
  AgentFixture fixture;
  REQUIRE(fixture.daemon.hello());
  fixture.daemon.forget();
  CHECK(fixture.daemon.find([](const auto& message) { return message.has_heartbeat(); }, seconds(20)));
}

TEST_CASE("an agent says what memory is free while it is to watch for it and no longer") {
  AgentFixture fixture(R"({"free_memory_bytes": 1000000000})", {"--memory-poll-ms", "20"});
  const auto hello = fixture.daemon.hello();
  REQUIRE(hello);
  const auto watch = [&](std::uint64_t bytes) {
    v1::DaemonMessage message;
    message.mutable_watch_memory()->set_gpu_uuid(hello->hello().devices(0).uuid());
    message.mutable_watch_memory()->set_trial_memory_bytes(bytes);
    fixture.daemon.send(message);
  };
  const auto offers = [](const auto& message) { return message.has_devices(); };
  watch(800'000'000);
  CHECK(fixture.daemon.find(offers));
  watch(0);
  std::this_thread::sleep_for(seconds(1));
  fixture.daemon.forget();
  CHECK_FALSE(fixture.daemon.find(offers, seconds(1)));
}

TEST_CASE("a configuration that hangs is killed at the deadline and timed out and the others go on") {
  AgentFixture fixture(
      R"({"faults": [{"at": "measure", "fault": "hang", "configuration": {"A": 4, "B": 2}}]})");
  const v1::JobResult result = fixture.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(text(result.winner()) != "A=4,B=2");
  bool timed_out = false;
  const v1::Batch stored = fixture.stored();
  for (const v1::TrialHeader& trial : stored.trials()) {
    timed_out = timed_out || (trial.outcome() == v1::TIMEOUT && trial.fault_count() == 2);
  }
  CHECK(timed_out);
}

TEST_CASE("a device worker that crashes once costs the configuration nothing") {
  AgentFixture fixture(
      R"({"faults": [{"at": "verify", "fault": "crash", "configuration": {"A": 4, "B": 2}, "times": 1}]})");
  const v1::JobResult result = fixture.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(text(result.winner()) == "A=4,B=2");
}

TEST_CASE("a foreign process makes the job wait and say so") {
  AgentFixture fixture(R"({"faults": [{"at": "measure", "fault": "foreign_process", "times": 2}]})");
  const v1::JobResult result = fixture.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK(fixture.daemon.find(
      [](const auto& message) { return message.progress().state() == v1::Job::WAITING_FOR_IDLE_GPU; },
      seconds(1)));
  CHECK_FALSE(result.provenance().contended());
}

TEST_CASE("an agent that must never tune offers no device and says so") {
  AgentFixture fixture("{}", {"--tune-when", "never"});
  const auto hello = fixture.daemon.hello();
  REQUIRE(hello);
  CHECK(hello->hello().devices_size() == 0);
  CHECK(hello->hello().no_device_because() == "--tune-when never gives no consent to measure");
  CHECK(hello->hello().toolchains_size() >= 1);
}

TEST_CASE("a lease to compile uploads the named configurations and measures nothing") {
  AgentFixture fixture;
  v1::LeaseGrant lease = fixture.lease();
  lease.set_kind(v1::Job::COMPILE_WINNER);
  lease.clear_gpu_uuid();
  lease.set_architecture("sm_80");
  to_wire(Configuration{{{"A", 2}, {"B", 3}}}, *lease.add_compile());
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
