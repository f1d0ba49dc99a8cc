// tune --dry-run and --retune.
#include <catch2/catch.hpp>

#include "tests/service/cubindctl/live.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

std::vector<std::string> tune(const Problem& problem, const std::vector<std::string>& further = {}) {
  std::vector<std::string> arguments{"tune", kTinyKernel, "--problem", text_of(problem)};
  arguments.insert(arguments.end(), further.begin(), further.end());
  return arguments;
}

struct DryRunFixture {
  TinyDaemon daemon{{.problems = {tiny_problem(2), tiny_problem(3)}}};
};

}  // namespace

TEST_CASE_METHOD(DryRunFixture, "a dry run counts configurations and starts nothing") {
  const Json plan = ctl_json(daemon, tune(tiny_problem(2), {"--dry-run"}));
  const Json& problem = plan["problems"][0];
  CHECK(problem["valid_configurations"] == kTinyConfigurations);
  CHECK(problem["configurations"] == kTinyConfigurations);
  CHECK(problem["fresh"] == false);
  CHECK(problem["estimate_ms"].is_null());
  CHECK(ctl_json(daemon, {"jobs", "--all"})["jobs"].empty());
  CHECK_THAT(ctl(daemon, tune(tiny_problem(2), {"--dry-run"})).out,
             Contains("to measure") && Contains("time unknown") && Contains("Nothing was started."));
}

TEST_CASE_METHOD(DryRunFixture, "a dry run under a budget tells the trials and not the configurations") {
  CHECK(ctl_json(daemon, tune(tiny_problem(2), {"--dry-run", "--max-trials", "5"}))["trials"] == 5);
  CHECK(ctl_json(daemon, tune(tiny_problem(2), {"--dry-run", "--max-trials", "500"}))["trials"] ==
        kTinyConfigurations);
  const std::vector<std::string> timed = tune(tiny_problem(2), {"--dry-run", "--max-seconds", "5"});
  CHECK(ctl_json(daemon, timed)["trials"].is_null());
  CHECK_THAT(ctl(daemon, timed).out, Contains("as many configurations as the time allows"));
}

TEST_CASE_METHOD(DryRunFixture, "a dry run estimates from what earlier jobs of the kernel took") {
  REQUIRE(ctl(daemon, tune(tiny_problem(2))).exit_code == 0);
  const double took = ctl_json(daemon, {"jobs", "--all"})["jobs"][0]["elapsed_ms"];
  const Json plan = ctl_json(daemon, tune(tiny_problem(3), {"--dry-run"}));
  CHECK(plan["problems"][0]["estimate_ms"].get<double>() == Approx(took));
  CHECK(plan["problems"][0]["estimated_from_jobs"] == 1);
  CHECK(plan["estimate_ms"].get<double>() == Approx(took));
}

TEST_CASE_METHOD(DryRunFixture,
                 "what is fresh is reported and costs nothing unless it is to be measured again") {
  REQUIRE(ctl(daemon, tune(tiny_problem(2))).exit_code == 0);
  const Json plan = ctl_json(daemon, tune(tiny_problem(2), {"--dry-run"}));
  CHECK(plan["fresh"] == 1);
  CHECK(plan["estimate_ms"] == 0);
  CHECK(ctl_json(daemon, tune(tiny_problem(2), {"--dry-run", "--retune"}))["estimate_ms"] > 0);
  CHECK_THAT(ctl(daemon, tune(tiny_problem(2), {"--dry-run"})).out,
             Contains("1 problem, 1 fresh; there is nothing to measure."));
}

TEST_CASE_METHOD(DryRunFixture, "tune measures nothing twice and --retune measures it again") {
  REQUIRE(ctl(daemon, tune(tiny_problem(2))).exit_code == 0);
  const std::size_t once = daemon.measured_blocks().size();
  CHECK_THAT(ctl(daemon, tune(tiny_problem(2))).out, Contains("fresh already, nothing was measured"));
  CHECK(daemon.measured_blocks().size() == once);
  REQUIRE(ctl(daemon, tune(tiny_problem(2), {"--retune"})).exit_code == 0);
  CHECK(daemon.measured_blocks().size() > once);
}

TEST_CASE_METHOD(DryRunFixture, "a dry run says which problems the replayed table does not hold") {
  const std::vector<std::string> arguments =
      tune(tiny_problem(2), {"--problem", text_of(tiny_problem(4)), "--dry-run"});
  const Json plan = ctl_json(daemon, arguments);
  CHECK_FALSE(plan["problems"][0].contains("obstacle"));
  CHECK(plan["problems"][1]["obstacle"] == "the replayed table holds no recording of it");
  CHECK(plan["trials"] == kTinyConfigurations);
  const std::string out = ctl(daemon, arguments).out;
  CHECK_THAT(out, Contains("fails: the replayed table holds no recording of it") &&
                      Contains("1 job would fail; 12 configurations to measure"));
  CHECK(ctl(daemon, tune(tiny_problem(4))).exit_code == 5);
}

TEST_CASE_METHOD(DryRunFixture, "a dry run says that jobs would wait where no agent offers the device") {
  const std::string device = ctl_json(daemon, {"devices"})["devices"][0]["label"];
  const std::vector<std::string> arguments =
      tune(tiny_problem(2), {"--problem", text_of(tiny_problem(4)), "--device", device, "--dry-run"});
  CHECK(ctl_json(daemon, arguments)["problems"][0]["device_measurable"] == true);
  REQUIRE(ctl(daemon, tune(tiny_problem(3))).exit_code == 0);  // a class without a record goes with its agent
  REQUIRE(daemon->stop().has_value());
  daemon->options().replay.clear();
  daemon->start();
  const Json plan = ctl_json(daemon, arguments);
  CHECK(plan["problems"][0]["device_measurable"] == false);
  const std::string out = ctl(daemon, arguments).out;
  CHECK_THAT(out, Contains("to measure, waits") &&
                      Contains("No agent offers " + device + " for measurements: its jobs would wait"));
}

TEST_CASE("a dry run tells of a job that is open") {
  TinyDaemon daemon({.hold = true});
  REQUIRE(ctl(daemon, tune(tiny_problem(2), {"--detach"})).exit_code == 0);
  const Json plan = ctl_json(daemon, tune(tiny_problem(2), {"--dry-run"}));
  CHECK(plan["problems"][0]["job"]["id"] == ctl_json(daemon, {"jobs"})["jobs"][0]["id"]);
  CHECK(ctl(daemon, tune(tiny_problem(2), {"--dry-run", "--detach"})).exit_code == 2);
  daemon.let_go();
}

}  // namespace cubind::test
