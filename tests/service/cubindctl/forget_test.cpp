// cubindctl forget against a daemon that remembers faults.
#include <catch2/catch.hpp>

#include "tests/service/cubindctl/live.hpp"
#include "tests/support/facts.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

/// Fails in a worker and in the next one, at K=2 for good: it is twice as fast as anything else.
struct ForgetFixture {
  ForgetFixture() {
    tune(2);
    tune(3);
    daemon.write_faults("[]");
  }

  Json tune(int factor) {
    return ctl_json(daemon, {"tune", kTinyKernel, "--problem", text_of(tiny_problem(factor))})["jobs"][0];
  }
  Json forget(std::vector<std::string> words) {
    words.insert(words.begin(), "forget");
    return ctl_json(daemon, std::move(words));
  }

  TinyDaemon daemon{
      {.problems = {tiny_problem(2), tiny_problem(3)},
       .edit_table =
           [](Table& table) {
             TableTrial& trial = trial_of(table, tiny_problem(2), favourite());
             trial.screening = {test::block_of({10, 10, 10})};
             trial.finals = {test::block_of(std::vector<double>(32, 10.0))};
           },
       .faults =
           R"([{"at": "measure", "fault": "illegal_address", "configuration": {"THREADS": 64, "VECTOR": 2}},
               {"at": "verify", "fault": "wrong_result", "configuration": {"THREADS": 128, "VECTOR": 4},
                "problem": {"K": 3}}])"}};

  static Configuration favourite() { return {{{"THREADS", 64}, {"VECTOR", 2}}}; }
  static Json favourite_json() { return {{"THREADS", 64}, {"VECTOR", 2}}; }
};

TEST_CASE_METHOD(ForgetFixture, "a forgotten fault is tried again by the next tune and not before") {
  CHECK(tune(2)["already_fresh"] == true);
  const Json told = forget({kTinyKernel, "--problem", text_of(tiny_problem(2)), "--dry-run"});
  CHECK(told["dry_run"] == true);
  CHECK(told["faults"] == 1);
  CHECK(told["forgotten"][0]["outcomes"] == Json({{"runtime", 1}}));
  CHECK(tune(2)["already_fresh"] == true);

  const Json forgotten = forget({kTinyKernel, "--problem", text_of(tiny_problem(2, 4000))});  // of its bucket
  CHECK(forgotten["faults"] == 1);
  CHECK(forgotten["forgotten"][0]["problem"]["K"] == 2);
  const std::size_t measured = daemon.measured_blocks().size();
  const Json tuned = tune(2);
  CHECK(tuned["winner"] == favourite_json());
  CHECK(tuned["outcomes"].contains("runtime") == false);
  CHECK(daemon.measured_blocks().size() > measured);
  CHECK(tune(2)["already_fresh"] == true);
  CHECK(tune(3)["already_fresh"] == true);
}

TEST_CASE_METHOD(ForgetFixture, "faults are forgotten by configuration, by kernel or all of a device class") {
  const std::string device = ctl_json(daemon, {"devices"})["devices"][0]["label"];
  CHECK(forget({kTinyKernel, "--configuration", "THREADS=256", "--dry-run"})["faults"] == 0);
  CHECK(forget({kTinyKernel, "--configuration", "VECTOR=2,THREADS=64", "--dry-run"})["faults"] == 2);
  const ProgramResult all = ctl(daemon, {"forget", "--all", "--device", device, "--dry-run"});
  CHECK(all.exit_code == 0);
  CHECK_THAT(all.out, Contains("Would forget 3 on " + device) && Contains("1 wrong_result"));
  CHECK(forget({kTinyKernel})["faults"] == 3);
  CHECK_THAT(ctl(daemon, {"forget", kTinyKernel}).out, Contains("No such fault is remembered on " + device));
}

TEST_CASE_METHOD(ForgetFixture, "forget refuses what it does not know and says what is missing") {
  const auto refused = [&](std::vector<std::string> words, int exit_code, const std::string& message) {
    words.insert(words.begin(), "forget");
    const ProgramResult result = ctl(daemon, std::move(words));
    CHECK(result.exit_code == exit_code);
    CHECK_THAT(result.err, Contains(message));
  };
  refused({}, 2, "name a kernel, or give --all");
  refused({"--all", kTinyKernel}, 2, "--all");
  refused({"scal"}, 4, "did you mean \"scale\"");
  refused({kTinyKernel, "--configuration", "THREAD=64"}, 2, "did you mean \"THREADS\"");
  refused({kTinyKernel, "--configuration", "T=f32"}, 2, "is not of the form");
  refused({kTinyKernel, "--problem", "N=4096,T=f32"}, 2, "\"K\" is missing");
  refused({kTinyKernel, "--device", "h999"}, 4, "h999");
  CHECK(forget({"--all", "--dry-run"})["faults"] == 3);
}

TEST_CASE("without a GPU forget names an unknown kernel before the missing device") {
  TinyDaemon daemon({}, false);
  daemon->options().replay.clear();
  daemon->start();
  const ProgramResult slip = ctl(daemon, {"forget", "scal"});
  CHECK(slip.exit_code == 4);
  CHECK_THAT(slip.err, Contains("did you mean \"scale\"") && !Contains("GPU"));
  CHECK_THAT(ctl(daemon, {"forget", kTinyKernel}).err, Contains("name a device class"));
}

TEST_CASE("faults of a problem that is being measured are not forgotten") {
  TinyDaemon daemon({.faults = R"([{"at": "measure", "fault": "illegal_address",
                                    "configuration": {"THREADS": 64, "VECTOR": 2}}])"});
  const std::vector<std::string> tune = {"tune", kTinyKernel, "--problem", text_of(tiny_problem(2))};
  REQUIRE(ctl(daemon, tune).exit_code == 0);
  daemon.hold();
  std::vector<std::string> again = tune;
  again.insert(again.end(), {"--retune", "--detach"});
  REQUIRE(ctl(daemon, again).exit_code == 0);
  REQUIRE(eventually([&] { return daemon->connect().get_status(kPatience).jobs_running() == 1; }));
  const ProgramResult refused = ctl(daemon, {"forget", kTinyKernel});
  CHECK(refused.exit_code == 7);
  CHECK_THAT(refused.err, Contains("is measuring scale at " + text_of(tiny_problem(2))));
}

}  // namespace
}  // namespace cubind::test
