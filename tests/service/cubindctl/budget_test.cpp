// How much a tune tries, and where its time went.
#include <catch2/catch.hpp>

#include "tests/service/cubindctl/live.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

struct BudgetFixture {
  std::vector<std::string> tune(const std::vector<std::string>& more) {
    std::vector<std::string> words{"tune", kTinyKernel, "--problem", text_of(tiny_problem(2))};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Json tuned(const std::vector<std::string>& more) { return ctl_json(daemon, tune(more))["jobs"][0]; }

  TinyDaemon daemon;
};

TEST_CASE_METHOD(BudgetFixture,
                 "a budget of trials ends the search and a larger one goes on where it ended") {
  const Json first = tuned({"--max-trials", "5"});
  CHECK(first["configurations_done"] == 5);
  CHECK(first["max_trials"] == 5);
  CHECK_THAT(ctl(daemon, tune({"--max-trials", "4"})).out, Contains("fresh already, nothing was measured"));
  CHECK(tuned({})["configurations_done"] == kTinyConfigurations);
  CHECK_THAT(ctl(daemon, tune({"--max-trials", "100000"})).out, Contains("fresh already"));
}

TEST_CASE_METHOD(BudgetFixture, "a job that was done is shown with its outcomes and the time of its stages") {
  const std::string id = tuned({})["id"];
  const Json job = ctl_json(daemon, {"jobs", "show", id});
  CHECK(job["state"] == "done");
  std::uint32_t tried = 0;
  for (const auto& [outcome, count] : job["outcomes"].items()) {
    tried += count.get<std::uint32_t>();
  }
  CHECK(tried == kTinyConfigurations);
  double told = 0;
  for (const auto& [stage, ms] : job["stages_ms"].items()) {
    told += ms.get<double>();
  }
  CHECK(job["stages_ms"].contains("screening"));
  CHECK(told > 0);
  CHECK(told <= job["elapsed_ms"].get<double>());
  const std::string text = ctl(daemon, {"jobs", "show", id}).out;
  CHECK_THAT(text, Contains("finalists") && Contains("budget") && Contains("default"));
}

TEST_CASE_METHOD(BudgetFixture, "a budget that is none and a job that is none are refused") {
  CHECK(ctl(daemon, tune({"--max-trials", "0"})).exit_code == 2);
  CHECK(ctl(daemon, tune({"--max-trials", "100001"})).exit_code == 2);
  CHECK(ctl(daemon, tune({"--max-seconds", "-1"})).exit_code == 2);
  const ProgramResult none = ctl(daemon, {"jobs", "show", "nothing"});
  CHECK(none.exit_code != 0);
  CHECK_THAT(none.err, Contains("there is no job \"nothing\""));
}

}  // namespace
TEST_CASE_METHOD(BudgetFixture, "verify measures a record again and says what has changed") {
  tuned({});
  CHECK(ctl(daemon, {"verify"}).out == "No record is stale.\n");
  const Json job = ctl_json(daemon, {"verify", "--all"})["jobs"][0];
  CHECK(job["state"] == "done");
  CHECK(job["winner_changed"] == false);
  CHECK(job["before"]["winner"] == job["winner"]);
  CHECK(job["configurations_done"] < kTinyConfigurations);
  CHECK_THAT(ctl(daemon, {"verify", kTinyKernel, "--problem", text_of(tiny_problem(2)), "--all"}).out,
             Contains("; was ") && Contains("the winner stays"));
  CHECK_THAT(ctl(daemon, tune({})).out, Contains("fresh already, nothing was measured"));
  CHECK(ctl(daemon, {"verify", "--problem", "N=1"}).exit_code == 2);
}

}  // namespace cubind::test
