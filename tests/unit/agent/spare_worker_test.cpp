#include "tuner/agent/device/spare_worker.hpp"

#include <sys/wait.h>

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "base/file.hpp"

namespace cubind::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Spare workers that are shell scripts.
struct Spares {
  explicit Spares(const std::string& script)
      : program((folder.path() / "worker").string()), starter(spawner, program, {}, {}) {
    write_file_atomic(program, "#!/bin/sh\necho $$ >> " + pids() + "\n" + script + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  std::string pids() const { return (folder.path() / "pids").string(); }
  /// Waits for the end of the n-th worker, and leaves it to its owner.
  void await_end(std::size_t n) const {
    std::vector<pid_t> started;
    while (started.size() < n) {
      std::ifstream file(pids());
      started.assign(std::istream_iterator<pid_t>(file), {});
      std::this_thread::sleep_for(milliseconds(2));
    }
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(started[n - 1]), &ended, WEXITED | WNOWAIT);
  }

  TempDir folder{"cubind-spare"};
  std::string program;
  Spawner spawner;
  WorkerStarter starter;
  SpareWorker spare{starter};
};

TEST_CASE("the spare worker that was started is taken and the next one is another") {
  Spares spares("exec sleep 60");
  CHECK_FALSE(spares.spare.take());
  spares.spare.keep();
  spares.spare.keep();
  const auto first = spares.spare.take();
  REQUIRE(first);
  CHECK_FALSE(spares.spare.take());
  spares.spare.keep();
  const auto second = spares.spare.take();
  REQUIRE(second);
  CHECK(first->process.pid() != second->process.pid());
}

TEST_CASE("a spare worker that has died is not taken") {
  Spares spares("exit 3");
  spares.spare.keep();
  spares.await_end(1);
  CHECK_FALSE(spares.spare.take());
}

TEST_CASE("spare workers that die are replaced less and less often") {
  Spares spares("exit 3");
  auto now = SpareWorker::Clock::now();
  spares.spare.keep(now);
  for (std::size_t n = 1; n <= 3; ++n) {
    spares.await_end(n);
    const auto pause = seconds(1 << (n - 1));
    spares.spare.keep(now);
    spares.spare.keep(now + pause - milliseconds(1));
    CHECK_FALSE(spares.spare.take());
    now += pause;
    spares.spare.keep(now);
  }
}

TEST_CASE("a spare worker that cannot be started is tried again after a while") {
  Spares spares("exec sleep 60");
  const auto now = SpareWorker::Clock::now();
  std::filesystem::permissions(spares.program, std::filesystem::perms::none);
  spares.spare.keep(now);
  std::filesystem::permissions(spares.program, std::filesystem::perms::owner_all);
  spares.spare.keep(now + milliseconds(999));
  CHECK_FALSE(spares.spare.take());
  spares.spare.keep(now + seconds(1));
  CHECK(spares.spare.take());
}

}  // namespace
}  // namespace cubind::test
