#include "server/jobs/pending_checks.hpp"

#include <catch2/catch.hpp>

namespace cubind::test {
namespace {

struct PendingChecksFixture {
  PendingChecks checks;
  std::vector<std::string> answers;  // the log, or the error

  std::string add(std::uint64_t agent) {
    return checks.add(agent, [this](const CheckOutcome& outcome, const std::string& error) {
      answers.push_back(error.empty() ? outcome.log : error);
    });
  }
  void finish(const std::string& id, const std::string& log) {
    CheckOutcome outcome;
    outcome.log = log;
    checks.finish(id, outcome);
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
  finish(other, "other");
  CHECK(answers.back() == "other");
}

}  // namespace
}  // namespace cubind::test
