#include "server/jobs/pending_checks.hpp"

#include <catch2/catch.hpp>

namespace cubind::test {
namespace {

struct PendingChecksFixture {
  PendingChecks checks;
  std::vector<std::string> answers;  // the log, or the error

  std::string add(std::uint64_t agent, const std::string& caller = "a") {
    return checks.add(agent, caller, {}, [this](const v1::CheckResult& result, const std::string& error) {
      answers.push_back(error.empty() ? result.log() : error);
    });
  }
  /// The ids that an agent is given now.
  std::vector<std::string> begun(std::uint64_t agent, unsigned limit) {
    std::vector<std::string> ids;
    while (const auto order = checks.begin_next(agent, limit)) {
      ids.push_back(order->id);
    }
    return ids;
  }
  bool finish(const std::string& id, const std::string& log, std::uint64_t agent = 1) {
    v1::CheckResult result;
    result.set_log(log);
    return checks.finish(agent, id, result);
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
  CHECK_FALSE(finish(first, "forged", 2));
  CHECK(answers.empty());
  CHECK(finish(first, "first"));
  CHECK(answers == std::vector<std::string>{"first"});
}

TEST_CASE_METHOD(PendingChecksFixture,
                 "one caller never has all places of an agent and others come before his next") {
  using Ids = std::vector<std::string>;
  const std::string first = add(1), second = add(1), third = add(1);
  CHECK(begun(1, 2) == Ids{first});
  const std::string other = add(1, "b"), more = add(1, "b"), elsewhere = add(2, "a");
  CHECK(begun(1, 2) == Ids{other});
  finish(first, "");
  CHECK(begun(1, 2) == Ids{second});
  finish(second, "");
  finish(other, "");
  CHECK(begun(1, 3) == Ids{third, more});
  CHECK(begun(2, 1) == Ids{elsewhere});
}

TEST_CASE_METHOD(PendingChecksFixture,
                 "a check that is dropped tells which agent works on it and is not answered") {
  const std::string first = add(1), second = add(1, "b");
  REQUIRE(checks.begin_next(1, 2)->id == first);
  CHECK(checks.drop(first) == 1);
  CHECK_FALSE(checks.drop(second));
  CHECK_FALSE(checks.drop(first));
  finish(first, "late");
  CHECK(answers.empty());
  CHECK(begun(1, 2).empty());
}

}  // namespace
}  // namespace cubind::test
