// Compiles that never end or want too much, compilers that crash, and workers that are killed or stand still.
#include <signal.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "base/file.hpp"
#include "tests/nvrtc/compile_service/service_requests.hpp"
#include "tests/support/process_tree.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace cubind::test {
namespace {

// One line that makes a cubin of 1.2 GB.
v1::CompileRequest memory_bomb() {
  return compile_request("__device__ int big[300000000] = {1}; __global__ void k(int* p) { *p = big[*p]; }",
                         {"k"});
}

// Reaped or not.
void wait_until_dead(int pid) {
  const std::filesystem::path stat = "/proc/" + std::to_string(pid) + "/stat";
  const auto patience = std::chrono::steady_clock::now() + 10s;
  while (std::filesystem::exists(stat) && read_file(stat).find(") Z ") == std::string::npos) {
    REQUIRE(std::chrono::steady_clock::now() < patience);
    std::this_thread::sleep_for(1ms);
  }
}

// The worker after `before`, when it has computed for so long.
void stop_once_it_compiles(pid_t before, std::chrono::nanoseconds computed) {
  const pid_t worker = started_worker(before);
  while (cpu_time(worker) < computed) {
    std::this_thread::sleep_for(1ms);
  }
  ::kill(worker, SIGSTOP);
}

// As soon as it is there: long before its compiler has started.
pid_t stop_next_worker() {
  const pid_t worker = started_worker();
  ::kill(worker, SIGSTOP);
  return worker;
}

}  // namespace

TEST_CASE("an endless compile is killed at its deadline and only its own request fails") {
  CompileServiceOptions options = newest();
  options.deadline = 5s;
  CompileService service(options);
  const Digest bad = ask(service, endless()), after = ask(service, good());
  const v1::CompileReply reply = reply_to(service, bad);
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(), Contains("took longer than 5 s"));
  CHECK(reply_to(service, after).outcome() == v1::CORRECT);
}

TEST_CASE("a compile that wants more address space than its cap fails alone") {
  CompileServiceOptions options = newest();
  options.address_space_bytes = std::uint64_t{1} << 30;
  CompileService service(options);
  const v1::CompileReply reply = compile(service, memory_bomb());
  INFO(reply.log());
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK(reply.cubin().empty());
  CHECK_THAT(reply.log(), Contains("memory"));
  CHECK(compile(service, good()).outcome() == v1::CORRECT);
}

TEST_CASE("a resident set above its cap is seen by the parent") {
  CompileServiceOptions options = newest();
  options.address_space_bytes = 0;
  options.memory_bytes = std::uint64_t{400} << 20;
  CompileService service(options);
  const v1::CompileReply reply = compile(service, memory_bomb());
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(), Contains("killed: the compile took more than 400 MiB of memory"));
  CHECK(compile(service, good()).outcome() == v1::CORRECT);
}

TEST_CASE("a source that overflows the compiler's stack is the outcome of its configuration") {
  CompileServiceOptions options = newest();
  options.address_space_bytes = options.memory_bytes = std::uint64_t{1} << 30;
  CompileService service(options);
  std::string source = "__global__ void k(int* p) { *p = ";
  for (int i = 0; i < 300000; ++i) {
    source += "-~";
  }
  const v1::CompileReply reply = compile(service, compile_request(source + "p[1]; }", {"k"}));
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_FALSE(reply.log().empty());
  CHECK(compile(service, good()).outcome() == v1::CORRECT);
}

TEST_CASE("a crash of the compiler is the outcome of its configuration") {
  CompileService service(newest());
  const Digest bad = ask(service, endless());
  kill(busy_worker(), SIGSEGV);
  const v1::CompileReply reply = reply_to(service, bad);
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(), Contains("the compiler crashed"));
}

TEST_CASE("a compile whose worker is killed from outside is repeated and lost after the third time") {
  CompileService service(newest());
  const Digest bad = ask(service, endless());
  const std::vector<Digest> others = {ask(service, good(1)), ask(service, good(2))};
  for (int i = 0; i < 3; ++i) {
    CHECK(waits(service, bad, 0s));
    const pid_t worker = busy_worker();
    kill(worker, SIGKILL);
    wait_until_dead(worker);
  }
  CHECK_THROWS_WITH(reply_to(service, bad), Contains("killed from outside: signal 9"));
  for (const Digest& other : others) {
    CHECK(reply_to(service, other).outcome() == v1::CORRECT);
  }
  ask(service, endless());
  CHECK(waits(service, bad));  // it has begun again
}

TEST_CASE("a worker that dies while it is idle fails nothing") {
  CompileService service(newest());
  CHECK(compile(service, good(1)).outcome() == v1::CORRECT);
  const pid_t idle = started_worker();
  kill(idle, SIGKILL);
  wait_until_dead(idle);
  CHECK(compile(service, good(2)).outcome() == v1::CORRECT);
}

TEST_CASE("a compile in the background is not failed by what others leave it of the machine") {
  CompileServiceOptions options = newest();
  options.start_deadline = options.deadline = 1s;
  CompileService service(options);
  const Digest key = ask(service, good(), CompilePriority::Background);
  const pid_t worker = stop_next_worker();
  CHECK(waits(service, key, 2s));
  CHECK(kill(worker, 0) == 0);
}

TEST_CASE("a compile whose worker stood still is repeated in a fresh one and counts when that does too") {
  CompileServiceOptions options = newest();
  options.deadline = 5s;
  CompileService service(options);
  service.probe();
  const pid_t first = started_worker();
  const auto to_start = cpu_time(first);
  ::kill(first, SIGSTOP);
  CHECK(compile(service, good()).outcome() == v1::CORRECT);

  const pid_t second = started_worker();
  REQUIRE(second != first);
  ::kill(second, SIGSTOP);
  std::jthread stopper([&] { stop_once_it_compiles(second, to_start + 200ms); });
  const v1::CompileReply reply = compile(service, endless());
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(), Contains("longer than 5 s"));
}

TEST_CASE("a worker that stands still before it is ready is replaced at the deadline of its start") {
  CompileServiceOptions options = newest();
  options.start_deadline = 5s;
  CompileService service(options);
  const Digest key = ask(service, good());
  stop_next_worker();
  CHECK(reply_to(service, key).outcome() == v1::CORRECT);
}

TEST_CASE("a withdrawn request waits for no worker that stands still before it is ready") {
  CompileService service(newest());
  const Digest withdrawn = ask(service, good(1));
  const pid_t stopped = stop_next_worker();
  service.give_up(withdrawn);
  CHECK(compile(service, good(2)).outcome() == v1::CORRECT);
  CHECK_FALSE(workers().contains(stopped));
}

}  // namespace cubind::test
