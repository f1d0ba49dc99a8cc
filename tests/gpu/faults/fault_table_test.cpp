// The rows of docs/faults.md that a GPU has a part in, with kernels that are really broken.
// tests/service/end_to_end has all rows on the replay device.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/file.hpp"
#include "plan/wire.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/fault_table.hpp"

namespace cubind::test {
namespace {

// Where the driver and NVRTC are found, and which GPUs may be used.
std::vector<std::string> environment_of_gpus() {
  std::vector<std::string> environment = {"CUBIND_RUN_DEADLINE_MS=3000"};
  for (const char* name : {"LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES"}) {
    if (const char* value = std::getenv(name)) {
      environment.push_back(std::string(name) + "=" + value);
    }
  }
  return environment;
}

void check_on_gpu(Daemon& daemon, const FaultRow& row) {
  const v1::TuneEvent end = tune_faulty(daemon.connect(), row.fault);
  INFO(row.name << ": " << end.ShortDebugString() << "\n" << daemon.log());
  REQUIRE(end.job().state() == v1::Job::DONE);
  CHECK(configuration_from_wire(end.winner(), "winner") == right_winner());
  CHECK(count_of(end, row.outcome) == 1);
  CHECK(count_of(end, Outcome::Correct) + count_of(end, Outcome::Unverified) == 3);
  if (const auto trial = stored_trial(daemon.connect(), row.fault)) {
    CHECK_THAT(trial->header.detail(), Catch::Contains(row.words));
  }
}

TEST_CASE(
    "kernels that are broken on the GPU end with their outcome and the right winner and the same daemon") {
  TempDir folder("cubind-faults");
  Daemon daemon({.folder = folder.path() / "daemon",
                 .kernels = {faulty_kernel_folder()},
                 .environment = environment_of_gpus()});
  daemon.start();
  const auto began = std::chrono::steady_clock::now();
  REQUIRE(eventually([&] { return daemon.connect().get_status(kPatience).devices_size() > 0; }));
  for (const FaultRow& row : fault_table()) {
    if (row.fault >= Fault::SharedMemory && row.fault <= Fault::OutOfMemory) {
      check_on_gpu(daemon, row);
    }
  }
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
  CHECK(daemon.connect().get_status(kPatience).uptime_ms() >= static_cast<std::uint64_t>(took.count()));
}

}  // namespace
}  // namespace cubind::test
