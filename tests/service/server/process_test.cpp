// The daemon's executable itself.
#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <csignal>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/subprocess.hpp"
#include "base/version.hpp"
#include "client/connection.hpp"
#include "tests/fakes/agent/fake_agent.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/health.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind::test {
namespace {

struct ProcessFixture {
  TempDir folder;
  std::filesystem::path socket = folder.path() / "run" / "s";
  std::string address = "unix://" + socket.string();

  Subprocess start(const std::vector<std::string>& more = {}, const std::string& database = "store.db") {
    SubprocessOptions options;
    options.program = (bin_dir() / "cubind").string();
    options.arguments = {"--no-local-agent",
                         "--log-level",
                         "warn",
                         "--socket",
                         socket.string(),
                         "--db",
                         (folder.path() / database).string()};
    if (std::ranges::find(more, "--tables") == more.end()) {
      options.arguments.emplace_back("--no-shipped-tables");
    }
    options.arguments.insert(options.arguments.end(), more.begin(), more.end());
    options.stderr_to = ChildStream::Pipe;
    return Subprocess::spawn(options);
  }
  bool is_serving() const { return health_of(address) == 1; }
  static std::string errors_of(Subprocess& process) {
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(process.stderr_pipe().get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
  }
};

TEST_CASE("the daemon is healthy on a socket of mode 0600 and SIGTERM ends it with 0") {
  ProcessFixture f;
  Subprocess daemon = f.start();
  DaemonFixture::eventually([&] { return f.is_serving(); });
  struct stat info {};
  REQUIRE(::stat(f.socket.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  daemon.send_signal(SIGTERM);
  CHECK(daemon.wait().code == 0);
  CHECK_FALSE(std::filesystem::exists(f.socket));
}

TEST_CASE("a second daemon on the same socket or store is refused with the reason") {
  ProcessFixture f;
  Subprocess daemon = f.start();
  DaemonFixture::eventually([&] { return f.is_serving(); });
  Subprocess second = f.start({}, "other.db");
  CHECK_THAT(ProcessFixture::errors_of(second), Catch::Matchers::Contains("another cubind"));
  CHECK(second.wait().code == 1);
  CHECK(f.is_serving());
}

TEST_CASE("a daemon whose socket is removed says so and the next one names the process to end") {
  using Catch::Matchers::Contains;
  ProcessFixture f;
  Subprocess daemon = f.start();
  DaemonFixture::eventually([&] { return f.is_serving(); });
  std::filesystem::remove_all(f.socket.parent_path());
  Subprocess second = f.start();
  CHECK_THAT(ProcessFixture::errors_of(second),
             Contains("its socket was removed") && Contains("kill " + std::to_string(daemon.pid())));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  daemon.send_signal(SIGTERM);
  CHECK_THAT(ProcessFixture::errors_of(daemon), Contains(f.address + ": the socket was removed"));
}

TEST_CASE("a daemon that was killed leaves nothing that keeps the next one from starting") {
  ProcessFixture f;
  {
    Subprocess daemon = f.start();
    DaemonFixture::eventually([&] { return f.is_serving(); });
    daemon.kill_group();
    daemon.wait();
  }
  Subprocess next = f.start();
  CHECK_NOTHROW(DaemonFixture::eventually([&] { return f.is_serving(); }));
}

TEST_CASE("a folder of tables that does not exist is named when a new store has none to import") {
  ProcessFixture f;
  Subprocess daemon = f.start({"--tables", "/nowhere/tables"});
  DaemonFixture::eventually([&] { return f.is_serving(); });
  daemon.send_signal(SIGTERM);
  CHECK_THAT(ProcessFixture::errors_of(daemon),
             Catch::Matchers::Contains("no tables are imported: /nowhere/tables: No such file"));
}

TEST_CASE(
    "a tuning whose daemon is stopped ends when its pings find no answer and so does a new connection") {
  ProcessFixture f;
  Subprocess daemon = f.start();
  DaemonFixture::eventually([&] { return f.is_serving(); });
  const ConnectionTimes soon{std::chrono::milliseconds(500), std::chrono::milliseconds(500),
                             std::chrono::milliseconds(500)};
  const Connection old(f.address, soon);
  const auto stop_it = [&](const v1::TuneEvent&) { daemon.send_signal(SIGSTOP); };
  const std::string where = f.address + ": no daemon answers there (";
  CHECK_THAT(message_of([&] { old.tune(tune_vector_add({4096}), stop_it, {}, std::nullopt); }),
             Catch::StartsWith(where) && Catch::Contains("its jobs go on"));
  CHECK_THAT(
      message_of([&] { Connection(f.address, soon).tune(tune_vector_add({4096}), {}, {}, std::nullopt); }),
      Catch::StartsWith(where) && Catch::Contains("kill -CONT"));
  daemon.send_signal(SIGCONT);
  CHECK(Connection(f.address).get_status(std::chrono::seconds(20)).version() == kVersion);
}

TEST_CASE("a text that is not UTF-8 is refused and leaves no line in the log") {
  ProcessFixture f;
  Subprocess daemon = f.start();
  DaemonFixture::eventually([&] { return f.is_serving(); });
  v1::TuneRequest request = tune_vector_add({4096});
  request.set_kernel("\xff");
  CHECK_THAT(message_of([&] { Connection(f.address).tune(request, {}, {}, std::nullopt); }),
             Catch::Contains("is not a TuneRequest in protobuf's wire format"));
  daemon.send_signal(SIGTERM);
  CHECK(ProcessFixture::errors_of(daemon).empty());
}

TEST_CASE("a tuning that hears nothing for a while is not closed for its pings") {
  ProcessFixture f;
  Subprocess daemon = f.start();
  DaemonFixture::eventually([&] { return f.is_serving(); });
  const ConnectionTimes often{std::chrono::seconds(5), std::chrono::milliseconds(kMinPingMs + 100),
                              std::chrono::seconds(5)};
  CHECK_THAT(message_of([&] {
               Connection(f.address, often)
                   .tune(
                       tune_vector_add({4096}), [](const v1::TuneEvent&) {}, {}, std::chrono::seconds(25));
             }),
             Catch::Contains("no answer in time"));
}

TEST_CASE("what the daemon logs of an agent's stream names the stream's request") {
  ProcessFixture f;
  Subprocess daemon = f.start();
  DaemonFixture::eventually([&] { return f.is_serving(); });
  const FakeAgent first(f.address, hello_with(h200_facts()));
  FakeAgent(f.address, hello_with(h200_facts())).wait_for_end();  // has the same id
  daemon.send_signal(SIGTERM);
  const std::string log = ProcessFixture::errors_of(daemon);
  const std::size_t refused = log.find("agent fake of owner of the socket is refused: ");
  REQUIRE(refused != std::string::npos);
  CHECK_THAT(log.substr(refused, log.find('\n', refused) - refused), Catch::Contains(" [request "));
  CHECK(daemon.wait().code == 0);
}

TEST_CASE("SIGTERM waits for the leases of an agent and gives up after some seconds") {
  ProcessFixture f;
  Subprocess daemon = f.start();
  DaemonFixture::eventually([&] { return f.is_serving(); });
  FakeAgent agent(f.address, hello_with(h200_facts()));
  const auto stub = v1::Cubind::NewStub(grpc::CreateChannel(f.address, grpc::InsecureChannelCredentials()));
  v1::TuneRequest request = tune_vector_add({4096});
  request.set_detach(true);
  grpc::ClientContext context;
  const auto reader = stub->Tune(&context, request);
  agent.wait_for_lease();
  daemon.send_signal(SIGTERM);
  agent.wait_for_drain();
  CHECK(daemon.wait().code == 0);
}

}  // namespace
}  // namespace cubind::test
