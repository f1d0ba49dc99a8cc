#include "tuner/agent/compile_pool.hpp"

#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <stop_token>
#include <thread>

#include "base/error.hpp"
#include "tests/nvrtc/toolchains/toolchains.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process_tree.hpp"
#include "tuner/agent/pool_compiler.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace cubind::test {
namespace {

CompilePoolOptions options_for(const Toolchain& toolchain, unsigned jobs = 1) {
  CompilePoolOptions options;
  options.worker_program = bin_dir() / "cubind-worker";
  options.nvrtc = toolchain.nvrtc;
  options.builtins = toolchain.builtins;
  options.jobs = jobs;
  return options;
}

CompilePoolOptions newest(unsigned jobs = 1) { return options_for(toolchains().front(), jobs); }

v1::CompileRequest good(int n = 1) {
  auto request = compile_request("template <int N> __global__ void k(int* p) { *p = N; }",
                                 {"k<" + std::to_string(n) + ">"});
  return request;
}

// NVRTC is busy with it for minutes and needs little memory.
v1::CompileRequest endless() {
  const std::string source = R"(
    template <int D, int X> struct Tree { static const int v = Tree<D - 1, 2 * X>::v + Tree<D - 1, 2 * X + 1>::v; };
    template <int X> struct Tree<0, X> { static const int v = X & 1; };
    __global__ void k(int* p) { *p = Tree<26, 1>::v; })";
  return compile_request(source, {"k"});
}

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

CompileResult result_of(CompilePool& pool, v1::CompileRequest request) {
  auto result = pool.wait(pool.submit(std::move(request)), 120s);
  REQUIRE(result.has_value());
  return *result;
}

// Waits until the only worker has used up CPU time for its compile.
int busy_worker(CompilePool& pool) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(20ms);
    if (const std::vector<int> pids = pool.worker_pids(); !pids.empty()) {
      std::this_thread::sleep_for(200ms);
      return pids.front();
    }
  }
  FAIL("no worker was started");
  return -1;
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

TEST_CASE("a request comes back with its id and its cubin") {
  CompilePool pool(newest());
  const std::uint64_t id = pool.submit(good());
  const auto result = pool.wait(id, 60s);
  REQUIRE(result.has_value());
  CHECK(result->id == id);
  CHECK(result->reply.outcome() == v1::CORRECT);
  CHECK_FALSE(result->reply.cubin().empty());
  CHECK(pool.pending() == 0);
}

TEST_CASE("each toolchain says in a probe what it is") {
  for (const Toolchain& toolchain : toolchains()) {
    CompilePool pool(options_for(toolchain));
    CHECK(pool.probe().name() == toolchain.name());
    CHECK(result_of(pool, good()).reply.outcome() == v1::CORRECT);
    CHECK(pool.counts().workers_started == 1);
  }
}

TEST_CASE("NVRTC calls are counted as the workers report them") {
  CompilePool pool(newest(2));
  for (int i = 0; i < 6; ++i) {
    pool.submit(good(i));
  }
  auto refused = good();
  refused.add_options("--device-c");
  pool.submit(std::move(refused));
  for (int i = 0; i < 7; ++i) {
    REQUIRE(pool.next(60s).has_value());
  }
  CHECK(pool.counts().nvrtc_calls == 6);
  CHECK(pool.counts().compiles == 7);
  CHECK(pool.pending() == 0);
}

TEST_CASE("a higher priority goes first and equals keep their order") {
  CompilePool pool(newest());
  const std::uint64_t blocker = pool.submit(good(0));
  std::vector<std::uint64_t> ids = {pool.submit(good(1)), pool.submit(good(2), CompilePriority::Check),
                                    pool.submit(good(3)), pool.submit(good(4), CompilePriority::Check)};
  REQUIRE(pool.wait(blocker, 60s).has_value());
  std::vector<std::uint64_t> order;
  while (const auto result = pool.next(60s)) {
    order.push_back(result->id);
  }
  CHECK(order == std::vector<std::uint64_t>{ids[1], ids[3], ids[0], ids[2]});
}

TEST_CASE("a request that is raised goes before those of its old priority") {
  CompilePool pool(newest());
  const std::uint64_t blocker = pool.submit(good(0));
  std::vector<std::uint64_t> ids = {pool.submit(good(1), CompilePriority::Ahead), pool.submit(good(2)),
                                    pool.submit(good(3), CompilePriority::Ahead)};
  pool.raise(ids[2], CompilePriority::Reference);
  REQUIRE(pool.wait(blocker, 60s).has_value());
  std::vector<std::uint64_t> order;
  while (const auto result = pool.next(60s)) {
    order.push_back(result->id);
  }
  CHECK(order == std::vector<std::uint64_t>{ids[2], ids[1], ids[0]});
}

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

TEST_CASE("a crash of the compiler is no loss of a worker by somebody else") {
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
  kill(pool.worker_pids().at(0), SIGKILL);
  std::this_thread::sleep_for(100ms);
  CHECK(result_of(pool, good()).reply.outcome() == v1::CORRECT);
  CHECK(pool.counts().workers_started == 2);
  CHECK(pool.counts().workers_lost == 1);
}

TEST_CASE("cancelled requests give no result and free their worker at once") {
  CompilePool pool(newest());
  const std::uint64_t running = pool.submit(endless());
  pool.submit(good());
  const int pid = busy_worker(pool);
  pool.cancel_all();
  CHECK(pool.pending() == 0);
  CHECK_FALSE(pool.wait(running, 5s).has_value());
  CHECK(result_of(pool, good()).reply.outcome() == v1::CORRECT);
  CHECK(kill(pid, 0) != 0);
}

TEST_CASE("one request is cancelled while the others go on") {
  CompilePool pool(newest());
  const std::uint64_t running = pool.submit(endless());
  const std::uint64_t kept = pool.submit(good(1));
  const std::uint64_t dropped = pool.submit(good(2));
  pool.cancel(dropped);
  pool.cancel(running);
  pool.cancel(12345);
  CHECK(pool.wait(kept, 60s)->reply.outcome() == v1::CORRECT);
  CHECK(pool.pending() == 0);
}

TEST_CASE("a pool that ends kills what runs") {
  int pid = -1;
  {
    CompilePool pool(newest());
    pool.submit(endless());
    pid = busy_worker(pool);
  }
  CHECK(kill(pid, 0) != 0);
}

TEST_CASE("a worker makes way for a fresh one after so many compiles") {
  auto options = newest();
  options.compiles_per_worker = 2;
  CompilePool pool(options);
  for (int i = 0; i < 5; ++i) {
    CHECK(result_of(pool, good(i)).reply.outcome() == v1::CORRECT);
  }
  CHECK(pool.counts().workers_started == 3);
  CHECK(pool.counts().workers_lost == 0);
}

TEST_CASE("without NVRTC every request and probe says what is missing") {
  auto options = newest();
  options.nvrtc = "/nowhere/libnvrtc.so.13";
  CompilePool pool(options);
  CHECK_THROWS_WITH(pool.probe(), Contains("/nowhere/libnvrtc.so.13"));
  const CompileResult result = result_of(pool, good());
  CHECK(result.worker_lost);
  CHECK_THAT(result.reply.log(), Contains("/nowhere/libnvrtc.so.13"));
  options = newest();
  options.worker_program = "/nowhere/cubind-worker";
  CompilePool none(options);
  CHECK_THROWS_WITH(none.probe(), Contains("/nowhere/cubind-worker"));
}

TEST_CASE("requests from many threads each come back once") {
  CompilePool pool(newest(2));
  std::vector<std::thread> threads;
  std::atomic<int> correct = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 4; ++i) {
        const auto result = pool.wait(pool.submit(good(10 * t + i)), 120s);
        correct += result && result->reply.outcome() == v1::CORRECT ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(correct == 32);
  CHECK(pool.counts().nvrtc_calls == 32);
}

TEST_CASE("as many processes work at a time as there are jobs") {
  CompilePool pool(newest(3));
  for (int i = 0; i < 5; ++i) {
    pool.submit(endless());
  }
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (pool.worker_pids().size() < 3 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(10ms);
  }
  std::this_thread::sleep_for(100ms);
  CHECK(pool.worker_pids().size() == 3);
  CHECK(pool.pending() == 5);
}

TEST_CASE("pools that share slots run no more compiles at a time than there are") {
  CompilePoolOptions options = newest();
  options.slots = std::make_shared<CompileSlots>(1);
  CompilePool first(options), second(options);
  const std::uint64_t id = first.submit(endless());
  busy_worker(first);
  second.submit(good());
  CHECK_FALSE(second.next(1s).has_value());
  first.cancel(id);
  const auto result = second.next(60s);
  REQUIRE(result.has_value());
  CHECK(result->reply.outcome() == v1::CORRECT);
}

TEST_CASE("who is more in a hurry has a slot that others cannot keep busy") {
  CompilePoolOptions options = newest(1 + CompileSlots::kReserved);
  options.slots = std::make_shared<CompileSlots>(1);
  CompilePool pool(options);
  pool.submit(endless());
  const std::uint64_t tuning = pool.submit(good(1));
  CHECK(pool.wait(pool.submit(good(2), CompilePriority::Check), 60s));
  pool.submit(endless(), CompilePriority::Check);
  pool.submit(endless(), CompilePriority::Check);
  CHECK(pool.wait(pool.submit(good(3), CompilePriority::Question), 60s));
  CHECK_FALSE(pool.wait(tuning, 100ms));
  pool.cancel_all();
}

TEST_CASE("a worker that stands still until the deadline is told from one that computes") {
  CompilePoolOptions options = newest();
  options.deadline = 1s;
  CompilePool pool(options);
  pool.probe();
  ::kill(pool.worker_pids().at(0), SIGSTOP);
  const CompileResult stopped = result_of(pool, good());
  CHECK(stopped.timed_out);
  CHECK(stopped.stood_still);
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

TEST_CASE("compile workers are started by exec and niced") {
  CompilePool pool(newest());
  pool.probe();
  REQUIRE(pool.worker_pids().size() == 1);
  const int worker = pool.worker_pids().front();
  CHECK(std::filesystem::read_symlink("/proc/" + std::to_string(worker) + "/exe") ==
        std::filesystem::canonical(bin_dir() / "cubind-worker"));
  CHECK(getpriority(PRIO_PROCESS, static_cast<id_t>(worker)) >=
        std::min(getpriority(PRIO_PROCESS, 0) + 10, 19));
}

TEST_CASE("processes compile in parallel and give the bytes that one of them gives") {
  const auto run = [](unsigned jobs) {
    CompilePool pool(newest(jobs));
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 8; ++i) {
      ids.push_back(pool.submit(good(i)));
    }
    std::vector<std::string> cubins;
    for (const std::uint64_t id : ids) {
      cubins.push_back(pool.wait(id, 60s)->reply.cubin());
      CHECK_FALSE(cubins.back().empty());
    }
    CHECK(pool.counts().workers_started == jobs);
    return cubins;
  };
  CHECK(run(1) == run(4));
}

}  // namespace cubind::test
