#include "server/jobs/dispatcher.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/server/queue_fixture.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE_METHOD(QueueFixture, "no job is leased while the daemon drains") {
  const OpenJob& job = submit();
  agents.join(agent_with(), link);
  queue.drain();
  dispatcher.dispatch();
  CHECK_FALSE(job.lease);
}

TEST_CASE_METHOD(QueueFixture, "a watcher that dispatches while jobs are placed places none") {
  OpenJob &first = submit(1024), &second = submit();
  AgentProfile profile = agent_with();
  profile.devices.push_back(profile.devices[0]);
  profile.devices[1].uuid = "GPU-2";
  agents.join(profile, link);
  std::size_t leases_then = 0;
  jobs.watch(first, [&](const JobEvent&) {
    dispatcher.dispatch();
    leases_then = link.leases.size();
  });
  dispatcher.dispatch();
  CHECK(leases_then == 1);
  CHECK(second.lease);
}

TEST_CASE_METHOD(QueueFixture, "a job without any device is no_device unless an agent is expected") {
  OpenJob& job = submit();
  agents.expect_until(clock.steady_now() + 10s);
  dispatcher.dispatch();
  CHECK(job.row.state == v1::Job::QUEUED);
  clock.advance(10s);
  dispatcher.dispatch();
  CHECK(job.row.state == v1::Job::NO_DEVICE);
}

TEST_CASE_METHOD(QueueFixture, "a lease that no message renews is withdrawn and its job pauses") {
  OpenJob& job = leased();
  clock.advance(14s);
  dispatcher.expire();
  REQUIRE(job.lease);
  clock.advance(1s);
  dispatcher.expire();
  CHECK_FALSE(job.lease);
  CHECK(link.ended.size() == 1);
  CHECK(job.row.fact.interruptions() == 1);
}

TEST_CASE_METHOD(QueueFixture,
                 "each agent learns the next job of its GPU once and no job is announced twice") {
  AgentProfile profile = agent_with();
  profile.devices.push_back(profile.devices[0]);
  profile.devices[1].uuid = "GPU-2";
  agents.join(profile, link);
  for (const std::int64_t n : {512, 1024, 2048, 4096}) {
    submit(n);
  }
  dispatcher.dispatch();
  dispatcher.dispatch();
  REQUIRE(link.announced.size() == 2);
  CHECK(link.announced[0].job.question.problem == problem_of(2048));
  CHECK(link.announced[1].job.question.problem == problem_of(4096));
}

}  // namespace
}  // namespace cubind::test
