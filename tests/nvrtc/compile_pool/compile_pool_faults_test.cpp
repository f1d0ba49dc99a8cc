// Compiles that never end or want too much, compilers that crash, and workers that are killed or stand still.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <stop_token>
#include <thread>

#include "base/file.hpp"
#include "tests/nvrtc/compile_pool/pool_requests.hpp"
#include "tests/support/process_tree.hpp"
#include "tuner/agent/pool_compiler.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace cubind::test {
namespace {

// One line that makes a cubin of 1.2 GB.
v1::CompileRequest memory_bomb() {
  return compile_request("__device__ int big[300000000] = {1}; __global__ void k(int* p) { *p = big[*p]; }",
                         {"k"});
}

std::optional<ProcessId> find_worker() {
  for (ProcessId& process : descendants(::getpid())) {
    if (process.command.find("cubind-worker compile") != std::string::npos) {
      return std::move(process);
    }
  }
  return std::nullopt;
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

v1::CompileReply wait_for(PoolCompiler& compiler, std::uint64_t id) {
  std::optional<v1::CompileReply> reply;
  while (!(reply = compiler.wait(id, 10s))) {
  }
  return *std::move(reply);
}

v1::CompileReply reply_to(PoolCompiler& compiler, const v1::CompileRequest& request) {
  return wait_for(compiler, compiler.submit(request, CompilePriority::Tuning));
}

// The worker after `before`, when it has computed for so long.
void stop_once_it_compiles(pid_t before, std::chrono::nanoseconds computed, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto worker = find_worker();
    if (worker && worker->pid != before && cpu_time(worker->pid) >= computed) {
      ::kill(worker->pid, SIGSTOP);
      return;
    }
    std::this_thread::sleep_for(1ms);
  }
}

// As soon as it is there: long before its compiler has started.
pid_t stop_next_worker() {
  while (true) {
    if (const auto worker = find_worker()) {
      ::kill(worker->pid, SIGSTOP);
      return worker->pid;
    }
  }
}

}  // namespace

TEST_CASE("an endless compile is killed at its deadline and only its own request fails") {
  auto options = newest();
  options.deadline = 1500ms;
  CompilePool pool(options);
  const std::uint64_t bad = pool.submit(endless());
  const std::uint64_t after = pool.submit(good());
  const auto result = pool.wait(bad, 60s);
  REQUIRE(result.has_value());
  CHECK(result->reply.outcome() == v1::COMPILE);
  CHECK(result->timed_out);
  CHECK_FALSE(result->worker_lost);
  CHECK_THAT(result->reply.log(), Contains("took longer than 1.5 s"));
  CHECK(pool.wait(after, 60s)->reply.outcome() == v1::CORRECT);
  CHECK(pool.counts().workers_started == 2);
  CHECK(pool.counts().workers_lost == 1);
}

TEST_CASE("a compile that wants more address space than its cap fails alone") {
  auto options = newest();
  options.address_space_bytes = std::uint64_t{1} << 30;
  CompilePool pool(options);
  const CompileResult result = result_of(pool, memory_bomb());
  INFO(result.reply.log());
  CHECK(result.reply.outcome() == v1::COMPILE);
  CHECK(result.reply.cubin().empty());
  CHECK_FALSE(result.worker_lost);
  CHECK_THAT(result.reply.log(), Contains("memory"));
  CHECK(result_of(pool, good()).reply.outcome() == v1::CORRECT);
}

TEST_CASE("a resident set above its cap is seen by the parent") {
  auto options = newest();
  options.address_space_bytes = 0;
  options.memory_bytes = std::uint64_t{400} << 20;
  options.deadline = std::chrono::seconds(150);
  CompilePool pool(options);
  const CompileResult result = result_of(pool, memory_bomb());
  CHECK(result.reply.outcome() == v1::COMPILE);
  CHECK_THAT(result.reply.log(), Contains("killed: the compile took more than 400 MiB of memory"));
  CHECK_FALSE(result.worker_lost);
  CHECK(result_of(pool, good()).reply.outcome() == v1::CORRECT);
}

TEST_CASE("a source that overflows the compiler's stack is the outcome of its configuration") {
  auto options = newest();
  options.address_space_bytes = options.memory_bytes = std::uint64_t{1} << 30;
  CompilePool pool(options);
  std::string source = "__global__ void k(int* p) { *p = ";
  for (int i = 0; i < 300000; ++i) {
    source += "-~";
  }
  const CompileResult result = result_of(pool, compile_request(source + "p[1]; }", {"k"}));
  CHECK(result.reply.outcome() == v1::COMPILE);
  CHECK_FALSE(result.reply.log().empty());
  CHECK_FALSE(result.worker_lost);
  CHECK(result_of(pool, good()).reply.outcome() == v1::CORRECT);
}

TEST_CASE("a crash of the compiler is no loss of a worker from outside") {
  CompilePool pool(newest());
  const std::uint64_t bad = pool.submit(endless());
  kill(busy_worker(pool), SIGSEGV);
  const auto result = pool.wait(bad, 60s);
  REQUIRE(result.has_value());
  CHECK_FALSE(result->worker_lost);
  CHECK_THAT(result->reply.log(), Contains("the compiler crashed"));
}

TEST_CASE("a worker that is killed in the middle of a compile fails that configuration alone") {
  CompilePool pool(newest());
  const std::uint64_t bad = pool.submit(endless());
  std::vector<std::uint64_t> others = {pool.submit(good(1)), pool.submit(good(2))};
  kill(busy_worker(pool), SIGKILL);
  const auto result = pool.wait(bad, 60s);
  REQUIRE(result.has_value());
  CHECK(result->reply.outcome() == v1::COMPILE);
  CHECK(result->worker_lost);
  CHECK_THAT(result->reply.log(), Contains("killed from outside: signal 9"));
  for (const std::uint64_t id : others) {
    CHECK(pool.wait(id, 60s)->reply.outcome() == v1::CORRECT);
  }
}

TEST_CASE("a worker that dies while it is idle fails nothing") {
  CompilePool pool(newest());
  CHECK(result_of(pool, good()).reply.outcome() == v1::CORRECT);
  const int idle = pool.worker_pids().at(0);
  kill(idle, SIGKILL);
  wait_until_dead(idle);
  CHECK(result_of(pool, good()).reply.outcome() == v1::CORRECT);
  CHECK(pool.counts().workers_started == 2);
  CHECK(pool.counts().workers_lost == 1);
}

TEST_CASE("a worker that stands still until the deadline is distinguished from one that computes") {
  CompilePoolOptions options = newest();
  options.deadline = 1s;
  CompilePool pool(options);
  pool.probe();
  ::kill(pool.worker_pids().at(0), SIGSTOP);
  const CompileResult stopped = result_of(pool, good());
  CHECK(stopped.timed_out);
  CHECK(stopped.stood_still);
}

TEST_CASE("a compile in the background is not failed by what others leave it of the machine") {
  CompilePoolOptions options = newest();
  options.start_deadline = options.deadline = 1s;
  CompilePool pool(options);
  const std::uint64_t id = pool.submit(good(1), CompilePriority::Background);
  const pid_t worker = stop_next_worker();
  CHECK_FALSE(pool.wait(id, 2s));
  CHECK(kill(worker, 0) == 0);
  CHECK(pool.pending() == 1);
}

TEST_CASE("a compile whose worker stood still is repeated in a fresh one and counts when that does too") {
  CompilePoolOptions options = newest();
  options.deadline = 2s;
  PoolCompiler compiler(options);
  compiler.probe();
  const auto idle = find_worker();
  REQUIRE(idle);
  const auto to_start = cpu_time(idle->pid);
  ::kill(idle->pid, SIGSTOP);
  CHECK(reply_to(compiler, good()).outcome() == v1::CORRECT);

  const auto second = find_worker();
  REQUIRE(second);
  REQUIRE(second->pid != idle->pid);
  ::kill(second->pid, SIGSTOP);
  std::jthread stopper(
      [&](const std::stop_token& stop) { stop_once_it_compiles(second->pid, to_start + 200ms, stop); });
  const v1::CompileReply reply = reply_to(compiler, endless());
  CHECK(reply.outcome() == v1::COMPILE);
  CHECK_THAT(reply.log(), Contains("longer than 2 s"));
}

TEST_CASE("a worker that stands still before it is ready is replaced at the deadline of its start") {
  CompilePoolOptions options = newest();
  options.start_deadline = 5s;
  PoolCompiler compiler(options);
  const std::uint64_t request = compiler.submit(good(), CompilePriority::Tuning);
  stop_next_worker();
  CHECK(wait_for(compiler, request).outcome() == v1::CORRECT);
}

TEST_CASE("a withdrawn request waits for no worker that stands still before it is ready") {
  CompilePool pool(newest());
  const std::uint64_t request = pool.submit(good(1));
  const pid_t stopped = stop_next_worker();
  pool.cancel(request);
  CHECK(pool.wait(pool.submit(good(2)), 30s).has_value());
  CHECK(find_worker()->pid != stopped);
}

}  // namespace cubind::test
