#include <catch2/catch.hpp>

#include <algorithm>
#include <iostream>
#include <thread>

#include "base/file.hpp"
#include "plan/problem.hpp"
#include "tests/gpu/device_worker/other_process.hpp"
#include "tests/support/daemon_fixture.hpp"

namespace cubind::test {
namespace {

const Problem kMeasured = {{{"N", 1 << 22}}, {{"T", DType::F32}}, {}, ""};

struct RealDaemon {
  RealDaemon() {
    daemon.start();
    REQUIRE(eventually([&] { return daemon.connect().get_status(kPatience).devices_size() > 0; }));
  }
  static v1::TuneRequest request() {
    v1::TuneRequest request;
    request.set_kernel("vector_add");
    *request.add_problems() = wire(kMeasured);
    request.set_max_trials(12);
    return request;
  }
  v1::TuneEvent tuned(const v1::TuneRequest& request) const {
    v1::TuneEvent last;
    daemon.connect().tune(
        request, [&](const v1::TuneEvent& event) { last = event; }, {}, std::chrono::minutes(3));
    return last;
  }

  TempDir folder{"cubind-whole-job"};
  Daemon daemon{{.folder = folder.path(), .arguments = {"--log-level", "debug"}}};
};

TEST_CASE("a whole job verifies its winner before and after timing and at the tails of its bucket") {
  const RealDaemon real;
  const v1::TuneEvent done = real.tuned(RealDaemon::request());
  INFO(done.DebugString());
  REQUIRE(done.job().state() == v1::Job::DONE);
  std::cout << done.provenance().ShortDebugString() << "\n";
  const v1::VerificationSummary& verified = done.provenance().verification();
  CHECK(verified.verified());
  CHECK(verified.after_timing());
  CHECK(verified.problems_size() > 1);
  CHECK(done.provenance().evidence() == v1::MEASURED);
  CHECK(done.provenance().timing().timer() == "cupti");
  CHECK(done.provenance().timing().samples() >= 10);
  CHECK_FALSE(done.provenance().timing().contended());

  const Table stored = read_table(export_everything(real.daemon.connect()), "export");
  REQUIRE(stored.records.size() == 1);
  const auto winner = std::ranges::find_if(stored.trials, [&](const TableTrial& trial) {
    return trial.context.trial == stored.records[0].context.trial;
  });
  REQUIRE(winner != stored.trials.end());
  const auto checks = [&](bool after_timing, bool at_tail) {
    return std::ranges::count_if(winner->verifications, [&](const VerificationResult& one) {
      return one.outcome() == v1::CORRECT && one.after_timing() == after_timing &&
             (problem_from_wire(one.problem(), "problem") != kMeasured) == at_tail;
    });
  };
  CHECK(checks(false, false) == 1);
  CHECK(checks(true, false) == 1);
  CHECK(checks(true, true) == verified.problems_size() - 1);
}

TEST_CASE("a job waits without a context while another process holds memory of the GPU and then goes on") {
  const RealDaemon real;
  Subprocess other = hold_a_gigabyte();
  v1::TuneRequest detached = RealDaemon::request();
  detached.set_detach(true);
  const std::string id = real.tuned(detached).job().id();
  const auto state = [&] { return real.daemon.connect().get_job(id, kPatience).state(); };
  REQUIRE(eventually([&] { return state() == v1::Job::WAITING_FOR_IDLE_GPU; }));
  CHECK(eventually([&] { return !find_process(real.daemon.pid(), "cubind-worker device"); }));
  CHECK(state() == v1::Job::WAITING_FOR_IDLE_GPU);
  other.kill_group();
  other.wait();
  REQUIRE(eventually([&] { return state() == v1::Job::DONE; }));
  CHECK_FALSE(
      read_table(export_everything(real.daemon.connect()), "export").records.at(0).timing.contended());
}

}  // namespace
}  // namespace cubind::test
