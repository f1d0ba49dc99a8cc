#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "base/framing.hpp"
#include "base/unique_fd.hpp"
#include "tests/service/agent/agent_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/refusal_of.hpp"
#include "tuner/agent/lease/job_channel.hpp"
#include "tuner/agent/lease/lease_channel.hpp"
#include "tuner/agent/lease/lease_stream.hpp"

namespace cubind::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr char kSlow[] = R"({"pace_us": 20000})";

TEST_CASE("every message of a lease names it and repeats its fencing number") {
  AgentFixture fixture;
  fixture.run();
  for (const v1::AgentMessage& message : fixture.daemon.messages()) {
    const bool is_of_no_lease = message.has_heartbeat() && message.lease_id().empty();
    if (message.has_hello() || is_of_no_lease) {
      continue;
    }
    CHECK(message.lease_id() == "lease-1");
    CHECK(message.fence() == 7);
  }
}

TEST_CASE("no more batches are sent before the first one was acknowledged than may be in flight") {
  AgentFixture fixture;
  const v1::LeaseGrant lease = fixture.lease();
  fixture.daemon.silent = true;
  fixture.grant(lease);
  const auto batches = [&] {
    return static_cast<std::size_t>(std::ranges::count_if(
        fixture.daemon.messages(), [](const v1::AgentMessage& message) { return message.has_batch(); }));
  };
  CHECK(eventually([&] { return batches() == kBatchesInFlight; }));
  std::this_thread::sleep_for(milliseconds(300));  // in which it would send many more
  CHECK(batches() == kBatchesInFlight);
}

TEST_CASE("an agent whose address can be none ends and says what would be right") {
  SubprocessOptions options;
  options.program = (bin_dir() / "cubind-agent").string();
  options.arguments = {"--address", "localhost", "--gpus", "none"};
  options.environment = agent_environment();
  CHECK(Subprocess::spawn(options).wait().code == 1);
}

TEST_CASE("SIGTERM hands the lease back and the agent says that it leaves and ends") {
  AgentFixture fixture(kSlow);
  fixture.grant(fixture.lease());
  fixture.wait_for_stage("screening");
  fixture.agent->send_signal(SIGTERM);
  const auto result = fixture.daemon.result();
  REQUIRE(result);
  CHECK(result->result().status() == v1::JobResult::INTERRUPTED);
  CHECK(std::ranges::any_of(fixture.daemon.messages(), &v1::AgentMessage::has_leaving));
  CHECK(fixture.agent->wait().code == 0);
}

// Returns when a client has come to the socket, which stays without an answer.
void wait_for_a_visit(const std::filesystem::path& socket, const std::function<void()>& listening) {
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const timeval patience{.tv_sec = 60, .tv_usec = 0};
  ::setsockopt(listener.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  listening();
  const UniqueFd visitor(::accept(listener.get(), nullptr, nullptr));
  REQUIRE(visitor);
  std::filesystem::remove(socket);
}

TEST_CASE("SIGTERM ends an agent whose daemon is missing") {
  const TempDir folder;
  write_file_atomic(folder.path() / "table.json", replayed_table());
  SubprocessOptions options;
  options.program = (bin_dir() / "cubind-agent").string();
  options.arguments = {"--address", "unix://" + (folder.path() / "no.sock").string(), "--replay",
                       (folder.path() / "table.json").string()};
  options.environment = agent_environment();
  std::optional<Subprocess> agent;
  wait_for_a_visit(folder.path() / "no.sock", [&] { agent.emplace(Subprocess::spawn(options)); });
  agent->send_signal(SIGTERM);
  const auto ended = agent->wait_until(steady_clock::now() + seconds(5));
  REQUIRE(ended);
  CHECK(ended->code == 0);
}

TEST_CASE("a draining daemon gets its leases back and the agent stays") {
  AgentFixture fixture(kSlow);
  fixture.grant(fixture.lease());
  fixture.wait_for_stage("screening");
  v1::DaemonMessage drain;
  drain.mutable_drain();
  fixture.daemon.send(drain);
  const auto result = fixture.daemon.result(seconds(5));
  REQUIRE(result);
  CHECK(result->result().status() == v1::JobResult::INTERRUPTED);
  CHECK_FALSE(fixture.agent->try_wait());
}

// Grants a lease for the same GPU and waits until it is measured for: the agent has given up the one before.
void measure_for_second_lease(AgentFixture& fixture) {
  v1::LeaseGrant second = fixture.lease();
  second.set_lease_id("lease-2");
  fixture.grant(second);
  REQUIRE(fixture.daemon.find([](const auto& message) {
    return message.lease_id() == "lease-2" && message.progress().stage() == "screening";
  }));
}

bool is_of_first_lease(const v1::AgentMessage& message) { return message.lease_id() == "lease-1"; }

TEST_CASE("a lease that was ended is dropped at once and nothing more is sent for it") {
  AgentFixture fixture(kSlow);
  fixture.grant(fixture.lease());
  fixture.wait_for_stage("screening");
  v1::DaemonMessage end;
  end.mutable_end_lease()->set_lease_id("lease-1");
  fixture.daemon.send(end);
  measure_for_second_lease(fixture);
  CHECK(std::ranges::none_of(fixture.daemon.messages(), &v1::AgentMessage::has_result));
  fixture.daemon.forget();
  REQUIRE(fixture.daemon.find([](const auto& message) { return message.has_batch(); }));
  CHECK(std::ranges::none_of(fixture.daemon.messages(), is_of_first_lease));
}

TEST_CASE("an agent comes back to a daemon that was away for several heartbeats") {
  AgentFixture fixture;
  REQUIRE(fixture.daemon.hello());
  fixture.daemon.leave();
  std::this_thread::sleep_for(seconds(2));  // a heartbeat is due each 200 ms
  fixture.daemon.forget();
  fixture.daemon.come_back();
  CHECK(fixture.daemon.hello());
  CHECK_FALSE(fixture.agent->try_wait());
}

TEST_CASE("an agent whose stream breaks drops its jobs and comes back") {
  AgentFixture fixture(kSlow);
  fixture.grant(fixture.lease());
  fixture.wait_for_stage("screening");
  fixture.daemon.forget();
  fixture.daemon.hang_up();
  REQUIRE(fixture.daemon.hello());
  measure_for_second_lease(fixture);
  const std::vector<v1::AgentMessage> messages = fixture.daemon.messages();
  const auto from_the_end =
      std::ranges::find_if(messages.rbegin(), messages.rend(), &v1::AgentMessage::has_hello);
  CHECK(std::ranges::none_of(from_the_end.base(), messages.end(), is_of_first_lease));
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

// What the agent logs until it has logged `wanted` or ends.
std::string logged_until(Subprocess& agent, const std::string& wanted) {
  const int fd = agent.stderr_pipe().get();
  std::string said;
  std::array<char, 4096> buffer{};
  while (said.find(wanted) == std::string::npos && wait_readable(fd, steady_clock::now() + seconds(20))) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count <= 0) {
      break;
    }
    said.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return said;
}

TEST_CASE("an agent whose token is missing at a reconnect says so and tries again") {
  const TempDir folder;
  const std::filesystem::path token = folder.path() / "token";
  write_file_atomic(token, "cubind_1_a");
  AgentDaemon daemon;
  SubprocessOptions options;
  options.program = (bin_dir() / "cubind-agent").string();
  options.arguments = {"--address", daemon.tcp_address(), "--gpus", "none", "--token-file", token.string()};
  options.environment = agent_environment();
  options.environment.emplace_back("CUBIND_INSECURE_TOKEN=1");
  options.stderr_to = ChildStream::Pipe;
  Subprocess agent = Subprocess::spawn(options);
  REQUIRE(daemon.find([](const auto& message) { return message.has_heartbeat(); }));  // it is welcomed
  std::filesystem::remove(token);
  daemon.forget();
  daemon.hang_up();
  CHECK_THAT(logged_until(agent, token.string()), Catch::Contains("tried again"));
  CHECK(daemon.messages().empty());
  write_file_atomic(token, "cubind_1_b");
  CHECK(daemon.hello());
}

// A stream of its own, without an agent around it.
struct StreamFixture {
  StreamFixture() { daemon.artifact_refusal = "the disk is full"; }
  // Why the stream broke; waits for it.
  std::optional<std::string> end() {
    eventually([&] { return stream.broken().has_value(); });
    return stream.broken();
  }
  ErrorCode code_of_fetch() {
    const Error error = error_of([&] { stream.fetch_cubin(Digest::of("cubin"), 1000); }).value();
    told = error.what();
    return error.code();
  }

  AgentDaemon daemon;
  std::string told;  // the words of the last error
  std::atomic<bool> welcomed{false};
  LeaseStream stream{daemon.address(), v1::Hello(), [this](const v1::DaemonMessage&) { welcomed = true; }};
};

TEST_CASE("a stream that the daemon has ended tells the daemon's reason") {
  StreamFixture fixture;
  fixture.daemon.refuse_next("protocol 1 is too old");
  fixture.stream.start();
  CHECK(fixture.end() == "protocol 1 is too old");
}

v1::Progress progress_at(const std::string& stage) {
  v1::Progress progress;
  progress.set_stage(stage);
  return progress;
}

TEST_CASE("the newest report that waits is sent once and one that was overtaken is not sent") {
  StreamFixture fixture;
  fixture.stream.start();
  REQUIRE(eventually([&] { return fixture.welcomed.load(); }));
  const JobStop stop;
  LeaseChannel channel(fixture.stream, v1::LeaseGrant(), stop);
  channel.progress_soon(progress_at("old"));
  channel.progress_soon(progress_at("new"));
  channel.send_waiting();
  channel.send_waiting();
  channel.progress_soon(progress_at("overtaken"));
  channel.progress(progress_at("at once"));
  channel.send_waiting();
  channel.finish({});
  std::vector<std::string> stages;
  for (const v1::AgentMessage& message : fixture.daemon.messages()) {
    if (message.has_progress()) {
      stages.push_back(message.progress().stage());
    }
  }
  CHECK(stages == std::vector<std::string>{"new", "at once"});
}

TEST_CASE("an artifact that the daemon refuses is reported with its reason and the lease is not lost") {
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

}  // namespace
}  // namespace cubind::test
