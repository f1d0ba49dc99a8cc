#include "server/jobs/leases.hpp"

#include <catch2/catch.hpp>

#include "tests/support/manual_clock.hpp"
#include "tests/unit/server/rows.hpp"
#include "tests/unit/server/scheduler_fixture.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

struct LeasesFixture {
  ManualClock clock;
  OpenJobs jobs{clock};
  Leases leases{clock, 15s};
  RecordingLink link;
  OpenJob& job = add("a", 4096);

  OpenJob& add(const std::string& id, std::int64_t n) {
    JobRow row;
    row.id = id;
    row.key = job_key(question_of(n));
    row.question = question_of(n);
    row.kind = v1::Job::TUNE;
    return jobs.add(std::move(row), h200_class());
  }
  void lease(OpenJob& to, const std::string& id, std::uint64_t agent = 1, const std::string& gpu = "GPU-1") {
    HeldLease lease;
    lease.id = id;
    lease.agent = agent;
    lease.gpu_uuid = gpu;
    lease.since = clock.steady_now();
    lease.link = &link;
    leases.begin(to, std::move(lease));
  }
};

TEST_CASE_METHOD(LeasesFixture, "a leased job is found by its lease and the lease's time is the job's") {
  lease(job, "lease-1");
  clock.advance(2s);
  CHECK(leases.renew(1, "lease-1", 0) == &job);
  CHECK(jobs.event(job).job.shown().elapsed_ms() == 2000);
  CHECK(job.row.shown().elapsed_ms() == 0);
  leases.end(job);
  clock.advance(2s);
  CHECK_FALSE(leases.renew(1, "lease-1", 0));
  CHECK(jobs.event(job).job.shown().elapsed_ms() == 2000);
  leases.end(job);
  CHECK(job.row.shown().elapsed_ms() == 2000);
}

TEST_CASE_METHOD(LeasesFixture, "a lease is renewed for its agent with its fence alone") {
  job.row.fact.set_fence(7);
  lease(job, "lease-1");
  clock.advance(10s);
  CHECK_FALSE(leases.renew(2, "lease-1", 7));
  CHECK_FALSE(leases.renew(1, "lease-1", 6));
  CHECK(job.lease->until == clock.steady_now() + 5s);
  REQUIRE(leases.renew(1, "lease-1", 7) == &job);
  CHECK(job.lease->until == clock.steady_now() + 15s);
}

TEST_CASE_METHOD(LeasesFixture, "a job whose lease ends waits in the state that follows and at no stage") {
  lease(job, "lease-1");
  job.stage = "screen";
  job.row.state = v1::Job::WAITING_FOR_IDLE_GPU;
  CHECK(leases.gpu_state("GPU-1") == "waiting_for_idle_gpu");
  leases.end(job, v1::Job::QUEUED);
  CHECK(leases.gpu_state("GPU-1") == "idle");
  CHECK(job.row.state == v1::Job::QUEUED);
  CHECK(job.stage.empty());
  CHECK(link.ended.empty());
}

TEST_CASE_METHOD(LeasesFixture, "a lease is withdrawn once and its agent gets the reason") {
  lease(job, "lease-1");
  leases.withdraw(job, "because");
  leases.withdraw(job, "again");
  CHECK(link.ended == std::vector<std::string>{"lease-1"});
  CHECK(link.why_ended == std::vector<std::string>{"because"});
  CHECK(leases.held().empty());
}

TEST_CASE_METHOD(LeasesFixture, "the leases of an agent are known by GPU and by how many compile") {
  OpenJob &second = add("b", 1024), &third = add("c", 512);
  lease(job, "1");
  lease(second, "2", 1, "");
  lease(third, "3", 2, "");
  CHECK(leases.holds_gpu("GPU-1"));
  CHECK_FALSE(leases.holds_gpu("GPU-2"));
  CHECK(leases.compiles_of(1) == 1);
  lease(third, "4", 1, "");
  CHECK(leases.compiles_of(1) == 2);
  CHECK(leases.compiles_of(2) == 0);
  CHECK(leases.of_agent(1).size() == 3);
  leases.end(job);
  CHECK_FALSE(leases.holds_gpu("GPU-1"));
  leases.end(second);
  CHECK(leases.compiles_of(1) == 1);
}

}  // namespace
}  // namespace cubind::test
