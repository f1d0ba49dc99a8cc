#include <unistd.h>

#include <catch2/catch.hpp>
#include <iostream>
#include <thread>

#include "tests/gpu/device_worker/device_worker_process.hpp"
#include "tests/gpu/device_worker/other_process.hpp"
#include "tests/gpu/device_worker/requests.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

bool is_foreign(DeviceWorkerProcess& worker, bool wanted) {
  for (int i = 0; i < 100; ++i) {
    if (worker.ask(Requests::probe()).foreign_use() == wanted) {
      return wanted;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return !wanted;
}

TEST_CASE("a process that takes memory of the GPU is foreign use for as long as it lives") {
  DeviceWorkerProcess worker;
  REQUIRE_FALSE(is_foreign(worker, false));
  {
    Subprocess other = hold_a_gigabyte();
    CHECK(is_foreign(worker, true));
    other.kill_group();
    other.wait();
  }
  CHECK_FALSE(is_foreign(worker, false));
}

TEST_CASE("a foreign process is reported with each reply to a request that uses the GPU") {
  const Requests problem = row_problem();
  const v1::LaunchPlan plan = row_plan(problem, "right");
  DeviceWorkerProcess worker;
  REQUIRE_FALSE(is_foreign(worker, false));
  REQUIRE_FALSE(worker.ask(problem.prepare()).foreign_use());
  Subprocess other = hold_a_gigabyte();
  REQUIRE(is_foreign(worker, true));
  CHECK(worker.ask(problem.prepare()).foreign_use());
  CHECK(worker.ask(Requests::load(plan)).foreign_use());
  CHECK(worker.ask(Requests::verify(plan)).foreign_use());
  const v1::DeviceReply reply = worker.ask(Requests::measure(plan, 1));
  CHECK(reply.foreign_use());
  REQUIRE(reply.measured_size() == 1);
  CHECK(reply.measured(0).conditions().contended());
}

v1::FoundGpus offered(const std::string& visible, std::vector<std::string> arguments = {}) {
  SubprocessOptions agent;
  agent.program = bin_dir() / "cubind-agent";
  agent.arguments = std::move(arguments);
  agent.arguments.emplace_back("--list-devices");
  agent.environment = environment_without("CUDA_VISIBLE_DEVICES=");
  agent.environment.push_back("CUDA_VISIBLE_DEVICES=" + visible);
  agent.stdout_to = ChildStream::Pipe;
  Subprocess process = Subprocess::spawn(agent);
  std::string printed(1 << 16, '\0');
  std::size_t size = 0;
  while (true) {
    const ssize_t count = ::read(process.stdout_pipe().get(), printed.data() + size, printed.size() - size);
    if (count <= 0) {
      break;
    }
    size += static_cast<std::size_t>(count);
  }
  CHECK(process.wait().success());
  v1::FoundGpus found;
  REQUIRE(found.ParseFromString(printed.substr(0, size)));
  return found;
}

TEST_CASE("the GPUs that are offered are those of CUDA_VISIBLE_DEVICES or the named ones") {
  const v1::FoundGpus none = offered("");
  CHECK(none.devices_size() == 0);
  CHECK(none.none_because() == "the driver shows no GPU (CUDA_VISIBLE_DEVICES=\"\")");
  const v1::FoundGpus first = offered("0");
  REQUIRE(first.devices_size() == 1);
  const std::string uuid = first.devices(0).uuid();
  std::cout << uuid << " " << first.devices(0).facts().name() << "\n";
  CHECK(uuid.starts_with("GPU-"));
  CHECK(offered("0", {"--gpus", uuid}).devices(0).uuid() == uuid);
  CHECK(offered(uuid).devices(0).uuid() == uuid);
}

}  // namespace
}  // namespace cubind::test
