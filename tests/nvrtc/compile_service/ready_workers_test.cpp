// Workers that are there before a request comes, and how long others stay.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <thread>

#include "base/file.hpp"
#include "tests/nvrtc/compile_service/service_requests.hpp"
#include "tests/support/eventually.hpp"

using namespace std::chrono_literals;

namespace cubind::test {

TEST_CASE("without a request no worker is started unless some are to be ready") {
  CompileService service(newest(1));
  CHECK(workers_of(0) == 0);
  service.keep_ready(2);
  CHECK(workers_of(2) == 2);
  service.keep_ready(100);
  CHECK(workers_of(3) == 3);  // as many as may compile at a time
}

// The only worker is ready when it has said hello.
pid_t ready_worker(CompileService& service) {
  service.keep_ready(1);
  service.probe();
  return started_worker();
}

TEST_CASE("a request goes to a worker that is ready and starts none") {
  CompileService service(newest(8));
  const pid_t ready = ready_worker(service);
  for (int i = 0; i < 20; ++i) {
    compile(service, good(i));
  }
  CHECK(workers() == std::set{ready});
}

TEST_CASE("a ready worker that ended with its request is replaced before another comes") {
  CompileServiceOptions options = newest(2);
  options.compiles_per_worker = 1;
  CompileService service(options);
  const pid_t ready = ready_worker(service);
  CHECK(compile(service, good()).outcome() == v1::CORRECT);
  CHECK(started_worker(ready) != ready);
}

void keep_three_then_one(CompileService& service) {
  service.keep_ready(3);
  REQUIRE(workers_of(3) == 3);
  service.keep_ready(1);
  CHECK(workers_of(1) == 1);
}

TEST_CASE("workers beyond those that are kept end after a time without work") {
  CompileServiceOptions options = newest(3);
  options.idle_time = 200ms;
  CompileService service(options);
  keep_three_then_one(service);
  service.keep_ready(0);
  CHECK(workers_of(0) == 0);
  CHECK(compile(service, good()).outcome() == v1::CORRECT);
}

TEST_CASE("of workers that have been without work for equally long the kept ones stay and none is replaced") {
  CompileServiceOptions options = newest(3);
  options.idle_time = 1500ms;
  CompileService service(options);
  keep_three_then_one(service);
  const auto kept = workers();
  std::this_thread::sleep_for(options.idle_time);
  CHECK(workers() == kept);
}

TEST_CASE("a worker that cannot be started is not tried again until a request comes") {
  const TempDir folder;
  const std::filesystem::path program = folder.path() / "worker", tried = folder.path() / "tried";
  write_file_atomic(program, "#!/bin/sh\necho >> " + tried.string() + "\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  CompileServiceOptions options = newest();
  options.program = nvrtc_program(program, "/nowhere/n", "/nowhere/b");
  CompileService service(options);
  const auto tries = [&] { return std::filesystem::exists(tried) ? read_file(tried, 100).size() : 0; };
  service.keep_ready(1);
  CHECK(eventually([&] { return tries() == 1; }));
  CHECK(workers_of(0) == 0);
  CHECK_THROWS(service.probe());
  CHECK(workers_of(0) == 0);
  CHECK(tries() == 2);
}

}  // namespace cubind::test
