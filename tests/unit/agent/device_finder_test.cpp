#include "tuner/agent/device/device_finder.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/file.hpp"
#include "tests/support/paths.hpp"
#include "tuner/agent/device/worker_link.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Writes, and then says nothing for as long as it is not killed.
Subprocess silent_child() {
  SubprocessOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", "echo begun; sleep 1000"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.stdout_to = ChildStream::Pipe;
  return Subprocess::spawn(options);
}

TEST_CASE("a driver that does not answer is given up at the deadline and its process killed") {
  Subprocess child = silent_child();
  CHECK_FALSE(output_of(child, steady_clock::now() + std::chrono::milliseconds(200), {}));
  CHECK(child.wait().signal == 9);
}

TEST_CASE("an agent that ends does not wait for a driver") {
  Subprocess child = silent_child();
  std::stop_source ending;
  ending.request_stop();
  CHECK_FALSE(output_of(child, steady_clock::now() + seconds(1000), ending.get_token()));
}

TEST_CASE("all that a process writes until its end is read") {
  SubprocessOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", "printf one; printf two"};
  options.stdout_to = ChildStream::Pipe;
  Subprocess child = Subprocess::spawn(options);
  CHECK(output_of(child, steady_clock::now() + seconds(60), {}) == "onetwo");
}

TEST_CASE("a worker sees its GPU alone whatever this process sees") {
  const TempDir folder;
  const std::string script = (folder.path() / "worker").string(), seen = (folder.path() / "seen").string();
  write_file_atomic(script, "#!/bin/sh\nenv > " + seen + "\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
  Spawner spawner;
  const WorkerStarter starter(spawner, script, {}, gpu_environment("GPU-5a3c"));
  WorkerLink link(starter);
  link.start();
  CHECK_FALSE(link.call({}, std::chrono::seconds(20), {}).reply);  // it has ended
  unsetenv("CUDA_VISIBLE_DEVICES");
  const std::string variables = "\n" + read_file(seen);
  CHECK_THAT(variables, Contains("\nCUDA_VISIBLE_DEVICES=GPU-5a3c\n"));
  CHECK_THAT(variables, Contains("\nCUDA_DEVICE_MAX_CONNECTIONS=1\n"));
  CHECK_THAT(variables, !Contains("0,1"));
}

}  // namespace
}  // namespace cubind::test
