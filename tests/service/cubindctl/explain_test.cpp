// cubindctl explain on what a daemon has tuned.
#include <catch2/catch.hpp>

#include "tests/service/cubindctl/live.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

constexpr const char* kFaults =
    R"([{"at": "measure", "fault": "illegal_address", "configuration": {"THREADS": 32, "VECTOR": 4}}])";

struct ExplainFixture {
  std::string tuned() {
    return ctl_json(daemon, {"tune", kTinyKernel, "--problem", text_of(tiny_problem(2))})["jobs"][0]["id"];
  }
  std::vector<std::string> words(const std::string& problem) {
    return {"explain", kTinyKernel, "--problem", problem};
  }

  TinyDaemon daemon{{.faults = kFaults}};
};

TEST_CASE_METHOD(ExplainFixture, "explain says the same of a job and of its problem") {
  const std::string id = tuned();
  const Json by_problem = ctl_json(daemon, words("T=f32,K=2,N=4096"));
  CHECK(by_problem == ctl_json(daemon, {"explain", id}));
  CHECK(by_problem["trials"] == kTinyConfigurations);
  CHECK(by_problem["timed"] == kTinyConfigurations - 1);
  CHECK(by_problem["winner"]["rule"] != "otherwise");
  CHECK(by_problem["finalists"].size() > 1);
  bool is_best = false;
  for (const Json& one : by_problem["best"]) {
    is_best = is_best || (one["is_winner"] && one["configuration"] == by_problem["winner"]["configuration"]);
  }
  CHECK(is_best);
}

TEST_CASE_METHOD(ExplainFixture, "explain tells a failed configuration with its outcome and message") {
  tuned();
  const Json failed = ctl_json(daemon, words(text_of(tiny_problem(2))))["failed"];
  REQUIRE(failed.size() == 1);
  CHECK(failed[0]["configuration"] == Json({{"THREADS", 32}, {"VECTOR", 4}}));
  CHECK(failed[0]["outcome"] == "runtime");
  CHECK_FALSE(failed[0]["message"].get<std::string>().empty());
  CHECK_THAT(ctl(daemon, words(text_of(tiny_problem(2)))).out, Contains("1 failed") && Contains("runtime"));
}

TEST_CASE_METHOD(ExplainFixture, "explain asks for a kernel's problem and says which were tuned") {
  const ProgramResult before = ctl(daemon, {"explain", kTinyKernel});
  CHECK(before.exit_code == 2);
  CHECK_THAT(before.err, Contains("is a kernel: name one of its problems by --problem; none was tuned here"));
  tuned();
  const ProgramResult after = ctl(daemon, {"explain", kTinyKernel});
  CHECK_THAT(after.err, Contains("`cubindctl explain scale --problem " + text_of(tiny_problem(2)) + "`"));
  const ProgramResult slip = ctl(daemon, {"explain", "scle"});
  CHECK(slip.exit_code == 4);
  CHECK_THAT(slip.err, Contains("did you mean \"scale\"?; nor is there such a job"));
}

TEST_CASE_METHOD(ExplainFixture, "explain refuses what it does not know and says what is missing") {
  const ProgramResult kernel = ctl(daemon, {"explain", "scle", "--problem", "N=1"});
  CHECK(kernel.exit_code == 4);
  CHECK_THAT(kernel.err, Contains("did you mean \"scale\""));
  CHECK(ctl(daemon, {"explain", "no-such-job"}).exit_code == 4);
  const ProgramResult untuned = ctl(daemon, words(text_of(tiny_problem(2))));
  CHECK(untuned.exit_code == 4);
  CHECK_THAT(untuned.err, Contains("no trials are stored"));
}

}  // namespace
}  // namespace cubind::test
