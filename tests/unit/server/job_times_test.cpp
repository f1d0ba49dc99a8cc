#include <catch2/catch.hpp>

#include "server/jobs/job_times.hpp"
#include "tests/unit/server/rows.hpp"

namespace cubind::test {
namespace {

JobRow ended(std::int64_t n, double elapsed_ms, std::uint32_t configurations) {
  JobRow job;
  job.question = question_of(n);
  job.key = job_key(job.question);
  job.state = v1::Job::DONE;
  job.shown().set_elapsed_ms(elapsed_ms);
  job.shown().set_configurations(configurations);
  return job;
}

TEST_CASE("without an ended job of the kernel on the device class the time is unknown") {
  CHECK_FALSE(JobTimes({}).estimate(question_of(1), 10));
  RecordQuestion elsewhere = question_of(1);
  elsewhere.device_class = Digest::of("another class");
  CHECK_FALSE(JobTimes({ended(1, 1000, 10)}).estimate(elsewhere, 10));
  RecordQuestion other = question_of(1);
  other.kernel = "another";
  CHECK_FALSE(JobTimes({ended(1, 1000, 10)}).estimate(other, 10));
}

TEST_CASE("the median time for a configuration of the kernel's jobs is taken times the configurations") {
  const JobTimes times({ended(1, 1000, 10), ended(2, 300, 10), ended(3, 4000, 20)});  // 100, 30 and 200 each
  const auto estimate = times.estimate(question_of(4), 5);
  REQUIRE(estimate);
  CHECK(estimate->elapsed_ms == Approx(500));
  CHECK(estimate->jobs == 3);
}

TEST_CASE("a question that was tuned before is estimated from its own jobs") {
  const JobTimes times({ended(1, 1000, 10), ended(1, 2000, 10), ended(2, 10, 10)});
  const auto estimate = times.estimate(question_of(1), 10);
  REQUIRE(estimate);
  CHECK(estimate->elapsed_ms == Approx(1500));
  CHECK(estimate->jobs == 2);
}

TEST_CASE("jobs that failed or only compiled or counted nothing tell no time") {
  JobRow failed = ended(1, 1000, 10);
  failed.state = v1::Job::FAILED;
  JobRow compiled = ended(1, 1000, 10);
  compiled.kind = v1::Job::COMPILE_WINNER;
  CHECK_FALSE(JobTimes({failed, compiled, ended(1, 1000, 0)}).estimate(question_of(1), 10));
}

}  // namespace
}  // namespace cubind::test
