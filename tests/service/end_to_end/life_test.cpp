// The daemon as a process: its end, and the deaths of its agent and workers.
#include <catch2/catch.hpp>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <csignal>
#include <thread>

#include "base/error.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

TEST_CASE("an agent that dies is started again") {
  TinyDaemon daemon;
  const auto agent = find_process(daemon->pid(), "cubind-agent");
  REQUIRE(agent);
  ::kill(agent->pid, SIGKILL);
  REQUIRE(wait_until_gone({*agent}).empty());
  const Connection connection = daemon->connect();
  // The dead one is counted until its stream is seen to have ended.
  const auto tunes = [&] {
    try {
      return tune(connection, {tiny_problem(2)}).at(0).job().state() == v1::Job::DONE;
    } catch (const Error&) {
      return false;
    }
  };
  CHECK(eventually(tunes));
}

// A daemon whose job holds a device worker.
class Busy {
 public:
  Busy() {
    v1::TuneRequest request = tune_request({tiny_problem(2)});
    request.set_detach(true);
    daemon->connect().tune(
        request, [](const v1::TuneEvent&) {}, {}, kPatience);
    REQUIRE(eventually([&] { return find_process(daemon->pid(), "cubind-worker device").has_value(); }));
  }
  TinyDaemon daemon{{.hold = true}};
};

TEST_CASE("the local agent and its workers die with a daemon that is killed") {
  Busy busy;
  const std::vector<ProcessId> family = descendants(busy.daemon->pid());
  CHECK(family.size() >= 3);  // the agent, a compile worker, the device worker
  busy.daemon->kill();
  busy.daemon->reap();
  CHECK(wait_until_gone(family).empty());
}

TEST_CASE("workers die with an agent that is killed") {
  Busy busy;
  const auto agent = find_process(busy.daemon->pid(), "cubind-agent");
  REQUIRE(agent);
  const std::vector<ProcessId> workers = descendants(agent->pid);
  CHECK(workers.size() >= 2);
  ::kill(agent->pid, SIGKILL);
  CHECK(wait_until_gone(workers).empty());
}

TEST_CASE("SIGTERM ends a daemon whose job thread stands still and its job goes on with the next start") {
  const TempDir failpoints("cubind-failpoints");
  const auto held = failpoints.path() / "daemon.acknowledge";
  write_file_atomic(held, "0");
  TinyDaemon daemon({.failpoints = failpoints.path().string()});
  v1::TuneRequest request = tune_request({tiny_problem(2)});
  request.set_detach(true);
  daemon->connect().tune(
      request, [](const v1::TuneEvent&) {}, {}, kPatience);
  REQUIRE(eventually([&] { return std::filesystem::exists(held.string() + ".reached"); }));

  const auto status = daemon->stop(std::chrono::seconds(10));
  REQUIRE(status.has_value());
  CHECK(status->success());
  CHECK(daemon->log().find("has not stopped within") != std::string::npos);

  std::filesystem::remove(held);
  daemon->start();
  CHECK(tune(daemon->connect(), {tiny_problem(2)}).at(0).job().state() == v1::Job::DONE);
}

// What the main thread waits for, a disk that stands still for one, must not keep SIGTERM waiting.
TEST_CASE("SIGTERM ends a daemon that is still starting") {
  const TempDir failpoints("cubind-failpoints");
  const auto held = failpoints.path() / "daemon.load";
  write_file_atomic(held, "0");
  TinyDaemon daemon({.failpoints = failpoints.path().string()}, false);
  const std::jthread terminator([reached = held.string() + ".reached"] {
    const bool starts = eventually([&] { return std::filesystem::exists(reached); });
    if (const auto process = find_process(::getpid(), "--db"); starts && process) {
      ::kill(process->pid, SIGTERM);
    }
  });
  CHECK(daemon->run_to_end(kPatience).success());
  CHECK(daemon->log().find("has not stopped within") != std::string::npos);
}

// gRPC 1.51 never accepts a connection again.
TEST_CASE("a daemon without descriptors ends within ten seconds with the reason") {
  TinyDaemon daemon;
  const auto descriptors =
      std::filesystem::directory_iterator("/proc/" + std::to_string(daemon->pid()) + "/fd");
  const auto most = static_cast<rlim_t>(std::distance(begin(descriptors), end(descriptors))) + 8;
  const rlimit limit{most, most};
  REQUIRE(::prlimit(daemon->pid(), RLIMIT_NOFILE, &limit, nullptr) == 0);
  const auto process = find_process(::getpid(), "--db");
  REQUIRE(process);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  daemon->socket().string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  std::vector<UniqueFd> connections;
  for (rlim_t i = 0; i < 2 * most; ++i) {
    connections.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    static_cast<void>(
        ::connect(connections.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
  }
  REQUIRE(wait_until_gone({*process}).empty());
  CHECK(daemon->reap().code == 1);
  CHECK(daemon->log().find("Too many open files") != std::string::npos);
  CHECK(daemon->log().find("its limit is " + std::to_string(most) + " open files") != std::string::npos);
}

bool holds(pid_t pid, const std::string& what, const std::string& where) {
  if (where == "maps") {
    return read_file("/proc/" + std::to_string(pid) + "/maps").find(what) != std::string::npos;
  }
  std::error_code gone;  // a worker whose job is done ends at any time
  const std::filesystem::directory_iterator descriptors("/proc/" + std::to_string(pid) + "/fd", gone);
  return std::ranges::any_of(descriptors, [&](const auto& descriptor) {
    return std::filesystem::read_symlink(descriptor, gone).string().find(what) != std::string::npos;
  });
}

TEST_CASE("neither daemon nor agent ever loads CUDA or NVRTC") {
  TinyDaemon daemon;
  tune(daemon->connect(), {tiny_problem(2)});
  const auto agent = find_process(daemon->pid(), "cubind-agent");
  const auto compiler = find_process(daemon->pid(), "cubind-worker compile");
  REQUIRE(agent);
  REQUIRE(compiler);
  for (const char* library : {"libcuda.so", "libnvrtc", "libcupti", "libnvidia-ml"}) {
    CHECK_FALSE(holds(daemon->pid(), library, "maps"));
    CHECK_FALSE(holds(agent->pid, library, "maps"));
  }
  CHECK(holds(compiler->pid, "libnvrtc", "maps"));
}

TEST_CASE("only the daemon opens the database") {
  TinyDaemon daemon;
  tune(daemon->connect(), {tiny_problem(2)});
  CHECK(holds(daemon->pid(), "store.db", "fd"));
  const auto others = descendants(daemon->pid());
  CHECK(others.size() >= 2);
  for (const ProcessId& other : others) {
    CHECK_FALSE(holds(other.pid, "store.db", "fd"));
  }
}

TEST_CASE("between jobs no device worker lives but a spare one") {
  TinyDaemon daemon;
  tune(daemon->connect(), {tiny_problem(2)});
  CHECK(eventually([&] { return !find_process(daemon->pid(), "cubind-worker device"); }));
  CHECK(eventually([&] { return find_process(daemon->pid(), kSpareWorker).has_value(); }));
}

// One that stays: an agent asks other workers what their device is and how much memory it has.
ProcessId spare_of(TinyDaemon& daemon) {
  std::optional<ProcessId> spare;
  REQUIRE(eventually([&] {
    spare = find_process(daemon->pid(), kSpareWorker);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return spare && is_running(*spare);
  }));
  return *spare;
}

TEST_CASE("a job goes on with the spare worker and none waits next to it") {
  TinyDaemon daemon({.hold = true});
  const ProcessId spare = spare_of(daemon);
  v1::TuneRequest request = tune_request({tiny_problem(2)});
  request.set_detach(true);
  daemon->connect().tune(
      request, [](const v1::TuneEvent&) {}, {}, kPatience);
  std::optional<ProcessId> worker;
  REQUIRE(
      eventually([&] { return (worker = find_process(daemon->pid(), "cubind-worker device")).has_value(); }));
  CHECK(worker->pid == spare.pid);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK_FALSE(find_process(daemon->pid(), kSpareWorker));
}

TEST_CASE("a spare worker that is killed is replaced") {
  TinyDaemon daemon;
  const ProcessId spare = spare_of(daemon);
  ::kill(spare.pid, SIGKILL);
  CHECK(eventually([&] {
    const auto next = find_process(daemon->pid(), kSpareWorker);
    return next && next->pid != spare.pid;
  }));
}

}  // namespace
}  // namespace cubind::test
