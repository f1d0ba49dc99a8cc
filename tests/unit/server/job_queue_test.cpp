#include "server/jobs/job_queue.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/server/queue_fixture.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE_METHOD(QueueFixture,
                 "a job whose GPU is in use waits and those that need an idle one wait with it") {
  OpenJob &job = leased(), &other = submit(1024), &asked = submit(2048);
  job.row.listed = other.row.listed = {{}};
  job.row.state = v1::Job::WAITING_FOR_IDLE_GPU;
  queue.hand_back(job, false, "");
  CHECK(job.row.state == v1::Job::WAITING_FOR_IDLE_GPU);
  CHECK(job.row.fact.interruptions() == 0);
  CHECK(other.not_before == clock.steady_now() + context.options.idle_retry);
  CHECK(asked.not_before <= clock.steady_now());
}

TEST_CASE_METHOD(QueueFixture,
                 "a job that is taken back prefers other agents and its agent gets the reason") {
  OpenJob& job = leased();
  queue.take_back(job, "the reports do not fit");
  CHECK(job.avoided == std::set<std::string>{agents.profiles()[0].key()});
  CHECK(link.why_ended == std::vector<std::string>{"the reports do not fit"});
}

TEST_CASE_METHOD(QueueFixture, "an error that passes queues the job again and any other one ends it") {
  OpenJob& job = leased();
  const std::string id = job.row.id;
  queue.give_up(job, Error(ErrorCode::ResourceExhausted, "store", "is full"));
  CHECK(job.refusal == "store: is full");
  CHECK(job.not_before >= clock.steady_now() + 1s);
  queue.give_up(job, Error(ErrorCode::Internal, "store", "is damaged"));
  CHECK(jobs.find(id) == nullptr);
  CHECK(stored(id).state == v1::Job::FAILED);
  CHECK(failures.find(stored(id).key, false) == "store: is damaged");
}

TEST_CASE_METHOD(QueueFixture,
                 "an ended job is counted with its trials and its watchers get the last event") {
  OpenJob& job = submit();
  std::vector<JobState> told;
  jobs.watch(job, [&](const JobEvent& event) { told.push_back(event.job.state); });
  auto& outcome = *job.row.shown().add_outcomes();
  outcome.set_outcome(to_wire(Outcome::Timeout));
  outcome.set_count(3);
  queue.end(job, v1::Job::CANCELLED, "cancelled");
  CHECK(told == std::vector{v1::Job::CANCELLED});
  CHECK(queue.totals().ended.at(v1::Job::CANCELLED) == 1);
  CHECK(queue.totals().trials.at(Outcome::Timeout) == 3);
}

TEST_CASE_METHOD(QueueFixture, "the store's open jobs are loaded as queued") {
  const std::string id = leased().row.id;
  OpenJobs later{clock};
  JobQueue loaded(context, later, leases, owners, order, failures);
  loaded.load_jobs();
  REQUIRE(later.find(id) != nullptr);
  CHECK(later.find(id)->row.state == v1::Job::QUEUED);
  CHECK(later.find(id)->row.fact.fence() == 1);
  CHECK(loaded.queued() == 1);
  CHECK(loaded.running() == 0);
}

}  // namespace
}  // namespace cubind::test
