#include "server/jobs/submissions.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/server/queue_fixture.hpp"

namespace cubind::test {
namespace {

TEST_CASE_METHOD(QueueFixture, "an order whose key has an open job gets that one, also while draining") {
  const std::string id = submit().row.id;
  queue.drain();
  CHECK(submissions.tune(order_of(4096), false) == id);
  CHECK_THROWS_WITH(submissions.tune(order_of(1024), false), "daemon: is shutting down");
  CHECK(jobs.all().size() == 1);
}

TEST_CASE_METHOD(QueueFixture,
                 "a retune of a leased job takes its lease and begins a series with a fence of its own") {
  OpenJob& job = leased();
  submissions.tune(order_of(4096), true);
  CHECK_FALSE(job.lease);
  CHECK(link.why_ended.size() == 1);
  CHECK(job.row.state == v1::Job::QUEUED);
  CHECK(job.row.fact.series() == 1);
  CHECK(stored(job.row.id).fact.fence() == 2);
}

TEST_CASE_METHOD(QueueFixture,
                 "a daemon alone on its store reads no changes of others and knows how its jobs ended") {
  OpenJob& job = submit();
  const std::string id = job.row.id;
  CHECK_FALSE(peers.take());
  CHECK_FALSE(peers.taken_at());
  queue.fail(job, "no GPU");
  CHECK(peers.ended(id).job.state == v1::Job::FAILED);
  CHECK(peers.ended(id).job.shown().error() == "no GPU");
}

}  // namespace
}  // namespace cubind::test
