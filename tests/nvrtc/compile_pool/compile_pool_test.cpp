#include "tuner/agent/compile_pool.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/nvrtc/compile_pool/pool_requests.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/paths.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace cubind::test {

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
  options.program =
      nvrtc_program(bin_dir() / "cubind-worker", "/nowhere/libnvrtc.so.13", toolchains().front().builtins);
  CompilePool pool(options);
  CHECK_THROWS_WITH(pool.probe(), Contains("/nowhere/libnvrtc.so.13"));
  const CompileResult result = result_of(pool, good());
  CHECK(result.worker_lost);
  CHECK_THAT(result.reply.log(), Contains("/nowhere/libnvrtc.so.13"));
  options = newest();
  options.program = nvrtc_program("/nowhere/cubind-worker", "/nowhere/n", "/nowhere/b");
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
  CHECK(eventually([&] { return pool.worker_pids().size() == 3; }));
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

TEST_CASE("a compile in the background has a worker in the idle class and holds up no other") {
  CompilePoolOptions options = newest(1 + CompileSlots::kReserved);
  options.slots = std::make_shared<CompileSlots>(1);
  CompilePool pool(options);
  pool.submit(endless(), CompilePriority::Background);
  CHECK(sched_getscheduler(started_worker(0)) == SCHED_IDLE);
  CHECK(pool.wait(pool.submit(good()), 60s));
  CHECK(pool.pending() == 1);
  CHECK(sched_getscheduler(pool.worker_pids().back()) == sched_getscheduler(0));
  pool.cancel_all();
}

TEST_CASE("a compile in the background starts again in another process when a caller waits for it") {
  CompilePool pool(newest());
  const std::uint64_t raised = pool.submit(endless(), CompilePriority::Background);
  const pid_t before = started_worker(0);
  pool.raise(raised, CompilePriority::Tuning);
  CHECK(sched_getscheduler(started_worker(before)) == sched_getscheduler(0));
  CHECK(pool.pending() == 1);
  pool.cancel(raised);
}

TEST_CASE("a compile that waits behind one in the background leaves it when a caller waits for it") {
  CompilePool pool(newest());
  pool.submit(endless(), CompilePriority::Background);
  const std::uint64_t raised = pool.submit(good(), CompilePriority::Background);
  CHECK_FALSE(pool.wait(raised, 200ms));
  pool.raise(raised, CompilePriority::Tuning);
  CHECK(pool.wait(raised, 60s));
  pool.cancel_all();
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

// Compiles with the header of this value alone.
CompileInput with_header(int value) {
  const auto file = std::make_shared<const CompilerFile>(
      CompilerFile::of("a.h", "#define A " + std::to_string(value) + "\n"));
  return {compile_request("#include \"a.h\"\nstatic_assert(A == " + std::to_string(value) +
                              ");\n__global__ void k(int* p) { *p = A; }",
                          {"k"}),
          std::make_shared<const SharedHeaders>(SharedHeaders{file->digest, {file}})};
}

TEST_CASE("a worker has the headers of each request whatever it was asked before") {
  for (const unsigned compiles_per_worker : {1000U, 1U}) {
    CompilePoolOptions options = newest();
    options.compiles_per_worker = compiles_per_worker;
    CompilePool pool(options);
    const CompileInput one = with_header(1);
    for (const CompileInput& input : {one, one, CompileInput(good()), one, with_header(2), one}) {
      const CompileResult result = result_of(pool, input);
      INFO(result.reply.log());
      CHECK(result.reply.outcome() == v1::CORRECT);
    }
  }
}

}  // namespace cubind::test
