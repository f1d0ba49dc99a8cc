// Workers that are there before a request comes, and how long others stay.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <thread>

#include "base/file.hpp"
#include "tests/nvrtc/compile_pool/pool_requests.hpp"
#include "tests/support/eventually.hpp"
#include "tuner/agent/compile_pool.hpp"

using namespace std::chrono_literals;

namespace cubind::test {

TEST_CASE("without a request no worker is started unless some are to be ready") {
  CompilePool pool(newest(3));
  CHECK(workers_of(pool, 0) == 0);
  pool.keep_ready(2);
  CHECK(workers_of(pool, 2) == 2);
  pool.keep_ready(100);
  CHECK(workers_of(pool, 3) == 3);
}

TEST_CASE("a request goes to a worker that is ready and starts none") {
  CompilePoolOptions options = newest(8);
  options.slots = std::make_shared<CompileSlots>(8);
  CompilePool pool(options);
  pool.keep_ready(2);
  REQUIRE(workers_of(pool, 2) == 2);
  for (int i = 0; i < 20; i += 2) {
    const std::uint64_t first = pool.submit(good(i)), second = pool.submit(good(i + 1));
    CHECK(pool.wait(first, 60s));
    CHECK(pool.wait(second, 60s));
  }
  CHECK(pool.counts().workers_started == 2);
}

TEST_CASE("a ready worker that ended with its request is replaced before another comes") {
  CompilePoolOptions options = newest(2);
  options.compiles_per_worker = 1;
  CompilePool pool(options);
  pool.keep_ready(1);
  CHECK(result_of(pool, good()).reply.outcome() == v1::CORRECT);
  CHECK(eventually([&] { return pool.counts().workers_started == 2; }));
}

void keep_three_then_one(CompilePool& pool) {
  pool.keep_ready(3);
  REQUIRE(workers_of(pool, 3) == 3);
  pool.keep_ready(1);
  CHECK(workers_of(pool, 1) == 1);
}

TEST_CASE("workers beyond those that are kept end after a time without work") {
  CompilePoolOptions options = newest(3);
  options.idle_time = 200ms;
  CompilePool pool(options);
  keep_three_then_one(pool);
  pool.keep_ready(0);
  CHECK(workers_of(pool, 0) == 0);
  CHECK(pool.counts().workers_lost == 0);
  CHECK(result_of(pool, good()).reply.outcome() == v1::CORRECT);
}

TEST_CASE("of workers that have been without work for equally long the kept ones stay and none is replaced") {
  CompilePoolOptions options = newest(3);
  options.idle_time = 1500ms;
  CompilePool pool(options);
  keep_three_then_one(pool);
  std::this_thread::sleep_for(options.idle_time);
  CHECK(pool.counts().workers_started == 3);
}

TEST_CASE("workers in the background end after a time without work") {
  CompilePoolOptions options = newest();
  options.idle_time = 200ms;
  CompilePool pool(options);
  CHECK(pool.wait(pool.submit(good(), CompilePriority::Background), 60s));
  CHECK(workers_of(pool, 0) == 0);
}

TEST_CASE("a worker that cannot be started is not tried again until a request comes") {
  const TempDir folder;
  const std::filesystem::path program = folder.path() / "worker", tried = folder.path() / "tried";
  write_file_atomic(program, "#!/bin/sh\necho >> " + tried.string() + "\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  CompilePoolOptions options = newest();
  options.program = nvrtc_program(program, "/nowhere/n", "/nowhere/b");
  CompilePool pool(options);
  pool.keep_ready(1);
  CHECK(workers_of(pool, 0) == 0);
  CHECK_THROWS(pool.probe());
  CHECK(workers_of(pool, 0) == 0);
  CHECK(read_file(tried, 100) == "\n\n");
}

}  // namespace cubind::test
