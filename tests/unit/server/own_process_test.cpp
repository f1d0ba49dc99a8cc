#include <catch2/catch.hpp>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/file.hpp"
#include "server/own_process.hpp"
#include "tests/support/eventually.hpp"

namespace cubind::test {
namespace {

namespace fs = std::filesystem;

/// A shell script in the agent's place.
struct Script {
  TempDir folder;
  fs::path path = folder.path() / "agent";

  explicit Script(const std::string& body) {
    write_file_atomic(path, "#!/bin/sh\ncd '" + folder.path().string() + "'\n" + body + "\n", 0755);
  }
  OwnProcessOptions options() const {
    OwnProcessOptions options;
    options.program = path;
    options.arguments = {"--gpus", "0"};
    options.address = "unix:///the/socket";
    options.first_delay = std::chrono::milliseconds(10);
    return options;
  }
  std::string said() const {
    return fs::exists(folder.path() / "said") ? read_file(folder.path() / "said") : "";
  }
};

TEST_CASE("the agent is started with its options and the daemon's address") {
  const Script script("echo \"$@\" > said; sleep 60");
  const OwnProcess process(script.options(), [] {});
  CHECK(eventually([&] { return script.said() == "--gpus 0 --address unix:///the/socket\n"; }));
}

TEST_CASE("an agent that ends is started again") {
  const Script script("echo again >> said");
  std::atomic<int> starts{0};
  const OwnProcess process(script.options(), [&] { ++starts; });
  CHECK(eventually([&] { return starts >= 3; }));
}

TEST_CASE("stopping sends SIGTERM and starts no other") {
  const Script script("trap 'echo bye > said; exit 0' TERM; echo up > said; while :; do sleep 0.05; done");
  std::atomic<int> starts{0};
  OwnProcess process(script.options(), [&] { ++starts; });
  REQUIRE(eventually([&] { return script.said() == "up\n"; }));
  process.stop();
  CHECK(eventually([&] { return script.said() == "bye\n"; }));
  CHECK(starts == 1);
}

TEST_CASE("an agent that ignores SIGTERM is killed with its daemon") {
  const Script script("trap '' TERM; echo $$ > said; while :; do sleep 0.05; done");
  pid_t pid = 0;
  {
    const OwnProcess process(script.options(), [] {});
    REQUIRE(eventually([&] { return !script.said().empty(); }));
    pid = std::stoi(script.said());
  }
  CHECK_FALSE(fs::exists("/proc/" + std::to_string(pid)));
}

}  // namespace
}  // namespace cubind::test
