#include "server/jobs/pending_checks.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/server/scheduler_fixture.hpp"

namespace cubind::test {
namespace {

/// Notes what it is asked to compile and to drop.
struct CheckLink final : RecordingLink {
  void check(const CheckOrder& order) override { begun.push_back(order.id); }
  std::vector<std::string> begun;
};

struct PendingChecksFixture {
  CheckLink links[2];
  JoinedAgents agents{{1, {{}, &links[0]}}, {2, {{}, &links[1]}}};
  PendingChecks checks{agents};
  std::vector<std::string> answers;  // the log, or the error

  std::string add(std::uint64_t agent, const std::string& caller = "a") {
    return checks.add(agent, caller, {}, [this](const v1::CheckResult& result, const std::string& error) {
      answers.push_back(error.empty() ? result.log() : error);
    });
  }
  /// The ids that an agent was given since the last call.
  std::vector<std::string> begun(std::uint64_t agent) { return std::exchange(links[agent - 1].begun, {}); }
  void finish(const std::string& id, const std::string& log, std::uint64_t agent = 1) {
    v1::CheckResult result;
    result.set_log(log);
    checks.finish(agent, id, result);
  }
};

TEST_CASE_METHOD(PendingChecksFixture, "a check is answered once by its own id") {
  const std::string first = add(1), second = add(1);
  finish(second, "second");
  finish(second, "again");
  CHECK(answers == std::vector<std::string>{"second"});
  finish(first, "first");
  CHECK(answers.back() == "first");
}

TEST_CASE_METHOD(PendingChecksFixture,
                 "the checks of an agent that leaves are answered with that and those of others wait on") {
  add(1);
  const std::string other = add(2);
  checks.agent_left(1);
  CHECK(answers == std::vector<std::string>{"the agent that compiled it left"});
  finish(other, "other", 2);
  CHECK(answers.back() == "other");
}

TEST_CASE_METHOD(PendingChecksFixture, "a check is answered by no agent but its own") {
  const std::string first = add(1);
  CHECK_THROWS_AS(finish(first, "forged", 2), Error);
  CHECK(answers.empty());
  finish(first, "first");
  CHECK(answers == std::vector<std::string>{"first"});
}

TEST_CASE_METHOD(PendingChecksFixture,
                 "one caller never has all places of an agent and others come before his next") {
  using Ids = std::vector<std::string>;
  const std::string first = add(1), second = add(1), third = add(1);
  CHECK(begun(1) == Ids{first});
  const std::string other = add(1, "b"), more = add(1, "b"), elsewhere = add(2, "a");
  CHECK(begun(1) == Ids{other});
  finish(first, "");
  CHECK(begun(1) == Ids{second});
  agents[1].profile.compile_jobs = 3;
  finish(second, "");
  CHECK(begun(1) == Ids{third, more});
  CHECK(begun(2) == Ids{elsewhere});
}

TEST_CASE_METHOD(
    PendingChecksFixture,
    "the agent of a check that is dropped stops and begins the next one, and no one is answered") {
  using Ids = std::vector<std::string>;
  const std::string first = add(1), second = add(1), third = add(1);
  checks.drop({first, second});
  CHECK(links[0].ended == Ids{first});
  CHECK(begun(1) == Ids{first, third});
  checks.drop({first});
  finish(first, "late");
  CHECK(answers.empty());
}

}  // namespace
}  // namespace cubind::test
