#include "server/jobs/agent_roster.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/server/scheduler_fixture.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("an agent is expected until the time is over or one joins") {
  ManualClock clock;
  AgentRoster agents(clock);
  RecordingLink link;
  CHECK_FALSE(agents.is_expected());
  agents.expect_until(clock.steady_now() + 10s);
  clock.advance(9s);
  CHECK(agents.is_expected());
  agents.join(agent_with(), link);
  CHECK_FALSE(agents.is_expected());
}

TEST_CASE("an agent is known by its token and id until it is removed, and its number is not given again") {
  ManualClock clock;
  AgentRoster agents(clock);
  RecordingLink link;
  AgentProfile other = agent_with();
  other.token = "another";
  const std::uint64_t first = agents.join(agent_with(), link);
  CHECK(agents.has(agent_with()));
  CHECK_FALSE(agents.has(other));
  CHECK(agents.find(first)->link == &link);
  agents.remove(first);
  CHECK_FALSE(agents.has(agent_with()));
  CHECK(agents.find(first) == nullptr);
  CHECK(agents.join(other, link) > first);
}

}  // namespace
}  // namespace cubind::test
