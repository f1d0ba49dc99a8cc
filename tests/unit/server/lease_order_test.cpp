#include "server/jobs/lease_order.hpp"

#include <catch2/catch.hpp>

#include "tests/support/manual_clock.hpp"
#include "tests/unit/server/store_fixture.hpp"
#include "tests/unit/server/vector_add_library.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;
using Order = std::vector<std::string>;

struct LeaseOrderFixture : StoreFixture {
  ManualClock clock;
  VectorAddLibrary kernels{clock};
  Index index;
  OpenJobs jobs{clock};
  Leases leases{clock, 15s};
  JobOwners owners{*store, kernels, leases};
  LeaseOrder order{jobs, leases, owners, index, kernels, clock};

  OpenJob& add(const std::string& id, JobKind kind, std::int64_t n, const std::string& caller = "") {
    JobRow row;
    row.id = id;
    row.kind = kind;
    row.question = question_of(n);
    row.key = Digest::of(id);
    OpenJob& job = jobs.add(std::move(row), h200_class());
    job.caller = caller;
    return job;
  }
};

TEST_CASE_METHOD(LeaseOrderFixture, "compiles come first, then jobs that a caller waits for, then by age") {
  add("background", v1::Job::TUNE, 1024);
  add("awaited", v1::Job::TUNE, 2048).is_awaited = true;
  add("again", v1::Job::TUNE, 4096).row.listed = {{}};
  add("compile", v1::Job::COMPILE_WINNER, 512);
  add("later", v1::Job::TUNE, 8192).not_before = clock.steady_now() + 1s;
  CHECK(order.ranked_jobs() == Order{"compile", "awaited", "background", "again"});
  CHECK(order.only_when_idle(jobs.find("again")->row));
}

TEST_CASE_METHOD(LeaseOrderFixture, "callers take turns with their compiles") {
  add("a1", v1::Job::COMPILE_WINNER, 512, "a");
  add("a2", v1::Job::COMPILE_WINNER, 1024, "a");
  add("b1", v1::Job::COMPILE_WINNER, 2048, "b");
  CHECK(order.ranked_jobs() == Order{"a1", "b1", "a2"});
}

TEST_CASE_METHOD(LeaseOrderFixture, "a job waits for a leased one that measures the same problem") {
  OpenJob &first = add("first", v1::Job::TUNE, 1024), &same = add("same", v1::Job::TUNE, 1024);
  CHECK_FALSE(order.is_measured_by_another(same));
  leases.begin(first, {"lease", 1, "GPU-1", {}, clock.steady_now(), clock.steady_now() + 15s, nullptr, {}});
  CHECK(order.is_measured_by_another(same));
  CHECK_FALSE(order.is_measured_by_another(add("other", v1::Job::TUNE, 2048)));
}

TEST_CASE_METHOD(LeaseOrderFixture, "a daemon alone on its store may run every job and names no owner") {
  const OpenJob& job = add("job", v1::Job::TUNE, 1024);
  CHECK(owners.may_run_here(job));
  CHECK(owners.resting_owner(job.row).empty());
  CHECK_FALSE(owners.is_shared());
  CHECK_FALSE(owners.is_offered_elsewhere(v1::Job::TUNE, h200_class().digest));
  RecordQuestion question = question_of(1024);
  CHECK_FALSE(owners.knows(question));
  question.interface = kernels.find("vector_add")->interface;
  CHECK(owners.knows(question));
}

}  // namespace
}  // namespace cubind::test
