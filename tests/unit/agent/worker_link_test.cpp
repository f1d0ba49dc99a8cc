#include "tuner/agent/device/worker_link.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"

namespace cubind::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A worker that is a shell script: it answers the first request as correct, once the file `go` is there.
struct ScriptedWorker {
  ScriptedWorker() : program((folder.path() / "worker").string()), starter(spawner, program, {}, {}) {
    write_file_atomic(program, "#!/bin/sh\nuntil [ -e " + go() + " ]; do sleep 0.01; done\n" +
                                   R"(printf '\002\000\000\000\010\001' >&3; exec cat <&3 >/dev/null)" +
                                   "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  std::string go() const { return (folder.path() / "go").string(); }

  TempDir folder{"cubind-link"};
  std::string program;
  Spawner spawner;
  WorkerStarter starter;
  SpareWorker spare{starter};
};

TEST_CASE("what is done meanwhile does not count for the worker's deadline") {
  const ScriptedWorker worker;
  WorkerLink link(worker.starter);
  link.start();
  const auto answer = link.call({}, seconds(1), [&] {
    std::this_thread::sleep_for(milliseconds(1100));
    write_file_atomic(worker.go(), "");
  });
  INFO(answer.death);
  REQUIRE(answer.reply);
  CHECK(answer.reply->outcome() == v1::CORRECT);
}

TEST_CASE("a failure meanwhile is not taken for the worker's") {
  const ScriptedWorker worker;
  WorkerLink link(worker.starter);
  link.start();
  const auto fails = [] { throw Error(ErrorCode::DeadlineExceeded, "lease", "slow"); };
  CHECK_THROWS_AS(link.call({}, seconds(60), fails), Error);
  CHECK(link.is_started());
}

TEST_CASE("a link goes on with the spare worker while there is one") {
  ScriptedWorker worker;
  write_file_atomic(worker.go(), "");
  WorkerLink link(worker.starter, &worker.spare);
  CHECK_FALSE(link.start_spare());
  CHECK_FALSE(link.is_started());
  worker.spare.keep();
  CHECK(link.start_spare());
  CHECK(link.call({}, seconds(60), {}).reply);
  CHECK_FALSE(worker.spare.take());
}

TEST_CASE("a link that was interrupted takes no spare worker") {
  ScriptedWorker worker;
  WorkerLink link(worker.starter, &worker.spare);
  worker.spare.keep();
  link.interrupt();
  CHECK_THROWS_AS(link.start_spare(), Error);
  CHECK(worker.spare.take());
}

}  // namespace
}  // namespace cubind::test
