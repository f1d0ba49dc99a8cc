#include "server/jobs/open_jobs.hpp"

#include <catch2/catch.hpp>

#include "tests/support/manual_clock.hpp"
#include "tests/unit/server/rows.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

struct OpenJobsFixture {
  ManualClock clock;
  OpenJobs jobs{clock};
  OpenJob& job = add("a", 4096);
  std::vector<JobState> told;

  OpenJob& add(const std::string& id, std::int64_t n) {
    JobRow row;
    row.id = id;
    row.key = job_key(question_of(n));
    row.question = question_of(n);
    return jobs.add(std::move(row), h200_class());
  }
  Watcher listen() {
    return [this](const JobEvent& event) { told.push_back(event.job.state); };
  }
  void remove() {
    job.row.state = v1::Job::CANCELLED;
    jobs.remove(job, jobs.event(job));
  }
};

TEST_CASE_METHOD(OpenJobsFixture, "an open job is found by id and key until it is removed") {
  add("b", 1024);
  CHECK(jobs.find("a") == &job);
  CHECK(jobs.find_key(job_key(question_of(4096))) == &job);
  remove();
  CHECK_FALSE(jobs.find("a"));
  CHECK_FALSE(jobs.find_key(job_key(question_of(4096))));
  REQUIRE(jobs.all().size() == 1);
  CHECK(jobs.find("b") == &jobs.all().front());
}

TEST_CASE_METHOD(OpenJobsFixture,
                 "a watcher that removes jobs when the daemon stops leaves those of others") {
  add("b", 1024);
  OpenJob& last = add("c", 512);
  jobs.watch(job, [this](const JobEvent& event) {
    told.push_back(event.job.state);
    if (event.daemon_stops) {
      for (const char* id : {"a", "b"}) {
        OpenJob& own = *jobs.find(id);
        jobs.remove(own, jobs.event(own));
      }
    }
  });
  jobs.watch(last, listen());
  jobs.tell_that_daemon_stops();
  CHECK(told.size() == 3);  // both stop, and the first one has ended
  CHECK(jobs.all().size() == 1);
}

TEST_CASE_METHOD(OpenJobsFixture, "a watcher of a job is notified until it is removed and that last") {
  jobs.watch(job, listen());
  CHECK(jobs.event(job).waiters == 1);
  job.row.state = v1::Job::RUNNING;
  jobs.tell(job);
  remove();
  CHECK(told == std::vector{v1::Job::RUNNING, v1::Job::CANCELLED});
}

TEST_CASE_METHOD(OpenJobsFixture,
                 "a watcher that stops is notified no more, also from within a watcher's call") {
  std::uint64_t first = 0;
  first = jobs.watch(job, [&](const JobEvent& event) {
    told.push_back(event.job.state);
    jobs.unwatch(first);
  });
  jobs.tell(job);
  jobs.tell(job);
  CHECK(told.size() == 1);
}

TEST_CASE_METHOD(OpenJobsFixture,
                 "the last event comes when the job is gone so that a watcher may submit it again") {
  bool is_open = true;
  const std::uint64_t id = jobs.watch(job, [&](const JobEvent&) { is_open = jobs.find("a") != nullptr; });
  remove();
  CHECK_FALSE(is_open);
  jobs.unwatch(id);
  jobs.unwatch(0);
}

TEST_CASE_METHOD(OpenJobsFixture,
                 "what is measured is the smaller problem where the question's does not fit") {
  CHECK(job.measured().problem == problem_of(4096));
  job.smaller = problem_of(3072);
  CHECK(job.measured().problem == problem_of(3072));
  CHECK(job.row.question.problem == problem_of(4096));
}

}  // namespace
}  // namespace cubind::test
