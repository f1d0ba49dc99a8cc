// Jobs whose problem a GPU has no memory for.
#include <catch2/catch.hpp>

#include "tests/support/full_disk.hpp"
#include "tests/unit/server/scheduler_fixture.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kOffered = 1000;
constexpr std::uint64_t kNeededBytes = 5000;

AgentProfile agent_with_memory(std::uint64_t bytes) {
  AgentProfile profile = agent_with();
  profile.devices[0].trial_memory_bytes = bytes;
  return profile;
}

// A job for the bucket of N=4096 (from 2049), leased to an agent.
struct BucketJob : SchedulerFixture {
  std::uint64_t agent = scheduler->agent_joined(agent_with_memory(kOffered), link);
  JobEvent job = ask();

  JobEvent ask() { return scheduler->submit_tunes({{question(4096), h200_class(), true}}, false).front(); }
  bool finish(const WorkResult& result) {
    const Lease lease = link.leases.back();
    return scheduler->finish(agent, lease.id, lease.fence, result);
  }
  bool say_smaller(std::int64_t n) {
    WorkResult result;
    result.told.set_status(v1::JobResult::SMALLER);
    result.told.set_error("9 GiB are needed");
    result.smaller_problem = problem_of(n);
    result.told.set_needs_bytes(kNeededBytes);
    return finish(result);
  }
  bool fail_for_memory() {
    WorkResult result;
    result.told.set_status(v1::JobResult::FAILED);
    result.told.set_error("out of device memory");
    result.told.set_needs_bytes(kNeededBytes);
    return finish(result);
  }
  void fail_for_memory_and_succeed() {
    fail_for_memory();
    ask();
    scheduler->store_batch(agent, link.leases[1].id, link.leases[1].fence, batch("a"));
    finish(done("a"));
  }
  void offer(std::uint64_t free) { scheduler->agent_devices(agent, agent_with_memory(free).devices); }
  std::optional<std::string> blocked(bool for_bucket = true) {
    return scheduler->failed_lately(job.job.key, for_bucket);
  }
  JobRow stored() {
    std::optional<JobRow> row;
    store->read([&](StoreReader& reader) { row = reader.job(job.job.id); });
    return row.value();
  }
  void restart() {
    scheduler = make();
    scheduler->load();
  }
};

TEST_CASE("a job for a bucket whose problem does not fit is leased at once for the smaller one") {
  BucketJob f;
  CHECK(f.link.leases.at(0).job.fact.for_bucket());
  CHECK(f.say_smaller(3072));
  REQUIRE(f.link.leases.size() == 2);
  CHECK(f.link.leases[1].job.question.problem == problem_of(3072));
  CHECK(f.link.leases[1].job.fact.for_bucket());
  CHECK(f.scheduler->find(f.job.job.id)->job.fact.interruptions() == 0);
}

TEST_CASE("the record of a smaller problem is stored under it and the job notes which and why") {
  BucketJob f;
  f.say_smaller(3072);
  RecordPtr told;
  f.scheduler->watch(f.job.job.id, [&](const JobEvent& event) { told = event.record; });
  f.scheduler->store_batch(f.agent, f.link.leases[1].id, f.link.leases[1].fence, f.batch("a", 3072));
  CHECK(f.finish(f.done("a", 3072)));
  REQUIRE(told);
  CHECK(told->question.problem == problem_of(3072));
  CHECK(f.stored().question.problem == problem_of(4096));
  CHECK(f.stored().shown().note() == "measured N=3072,T=f32 for N=4096,T=f32: 9 GiB are needed");
}

TEST_CASE("a lease that was lost is granted again for the smaller problem") {
  BucketJob f;
  f.say_smaller(3072);
  f.scheduler->agent_left(f.agent);
  f.agent = f.scheduler->agent_joined(agent_with_memory(kOffered), f.link);
  f.clock.advance(1s);
  f.scheduler->tick();
  CHECK(f.link.leases.at(2).job.question.problem == problem_of(3072));
}

TEST_CASE(
    "what is no smaller problem of the bucket is refused, and in the end fails the job with the reason") {
  const std::int64_t n = GENERATE(4096, 8192, 2048);
  BucketJob f;
  for (std::size_t leases = 1; leases <= 5; ++leases) {
    REQUIRE(f.link.leases.size() == leases);
    CHECK_FALSE(f.say_smaller(n));
    f.clock.advance(1min);
    f.scheduler->tick();
  }
  CHECK(f.link.leases.size() == 5);
  CHECK(f.stored().state == v1::Job::FAILED);
  CHECK_THAT(f.stored().shown().error(), Catch::Contains("not a smaller problem of the bucket of N=4096"));
}

TEST_CASE("a job for exactly its problem fails where the agent names a smaller one") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  CHECK_FALSE(f.link.leases.at(0).job.fact.for_bucket());
  WorkResult smaller;
  smaller.told.set_status(v1::JobResult::SMALLER);
  smaller.smaller_problem = problem_of(3072);
  f.scheduler->finish(agent, f.link.leases[0].id, f.link.leases[0].fence, smaller);
  CHECK(f.scheduler->open_jobs().empty());
  CHECK(f.link.leases.size() == 1);
}

TEST_CASE("a Tune that meets a job for a bucket makes it measure exactly its problem") {
  BucketJob f;
  f.say_smaller(3072);
  CHECK(f.submit(4096).job.id == f.job.job.id);
  REQUIRE(f.link.leases.size() == 3);
  CHECK(f.link.leases[2].job.question.problem == problem_of(4096));
  CHECK_FALSE(f.link.leases[2].job.fact.for_bucket());
}

TEST_CASE(
    "a Tune that meets a job for a bucket before it has shrunk lets it go on and forbids it to shrink") {
  BucketJob f;
  f.submit(4096);
  CHECK(f.link.ended.empty());
  f.say_smaller(3072);
  CHECK(f.stored().state == v1::Job::FAILED);
}

TEST_CASE("a job that was out of memory is not repeated by a miss until enough is free") {
  BucketJob f;
  f.fail_for_memory();
  f.clock.advance(60min);
  CHECK(f.blocked() == "out of device memory");
  f.offer(kNeededBytes - 1);
  CHECK(f.blocked());
  f.offer(kNeededBytes);
  CHECK_FALSE(f.blocked());
}

TEST_CASE("after a restart of the daemon a job that was out of memory still waits for more") {
  BucketJob f;
  f.fail_for_memory();
  f.restart();
  CHECK(f.blocked() == "out of device memory");
  f.scheduler->agent_joined(agent_with_memory(kNeededBytes), f.link);
  CHECK_FALSE(f.blocked());
}

TEST_CASE("a GPU that does not say how much is free is tried again after the pause") {
  BucketJob f;
  f.fail_for_memory();
  f.offer(0);
  CHECK(f.blocked());
  f.clock.advance(11min);
  CHECK_FALSE(f.blocked());
}

TEST_CASE("a miss tries the bucket of a problem that alone did not fit") {
  BucketJob f;
  f.submit(4096);
  f.fail_for_memory();
  CHECK(f.blocked(false));
  CHECK_FALSE(f.blocked(true));
}

// The failed job was leased to the first of two agents.
struct SecondAgent : BucketJob {
  explicit SecondAgent(std::uint64_t memory) {
    fail_for_memory();
    AgentProfile second = agent_with_memory(memory);
    second.devices.at(0).uuid = "GPU-2";
    scheduler->agent_joined(second, larger);
  }
  RecordingLink larger;
};

TEST_CASE("a job that was out of memory is leased to the GPU that has enough of it and others to any") {
  SecondAgent f(kNeededBytes);
  f.ask();
  REQUIRE(f.larger.leases.size() == 1);
  CHECK(f.link.leases.size() == 1);
  f.submit_tune(f.question(1024), h200_class(), false);
  CHECK(f.link.leases.size() == 2);
}

TEST_CASE("a Tune of a job that no GPU has the memory for is tried at once") {
  SecondAgent f(kNeededBytes - 1);
  f.submit(4096);
  CHECK(f.link.leases.size() == 2);
}

// The job is leased to the first of two GPUs and does not fit there.
struct OtherGpu : BucketJob {
  explicit OtherGpu(std::uint64_t memory) { scheduler->agent_joined(second_gpu(memory), other); }
  static AgentProfile second_gpu(std::uint64_t bytes) {
    AgentProfile profile = agent_with_memory(bytes);
    profile.devices[0].uuid = "GPU-2";
    return profile;
  }
  RecordingLink other;
};

TEST_CASE("a job that does not fit goes to another GPU with room for it before it shrinks or fails") {
  OtherGpu f(kNeededBytes);
  GENERATE(true, false) ? f.say_smaller(3072) : f.fail_for_memory();
  REQUIRE(f.other.leases.size() == 1);
  CHECK(f.other.leases[0].job.question.problem == problem_of(4096));
  CHECK(f.other.leases[0].job.id == f.job.job.id);
  CHECK(f.link.leases.size() == 1);
  CHECK(f.scheduler->find(f.job.job.id)->job.fact.interruptions() == 0);
}

TEST_CASE("a job shrinks where it is while no other GPU has room for it") {
  OtherGpu f(kNeededBytes - 1);
  f.say_smaller(3072);
  CHECK(f.link.leases.size() + f.other.leases.size() == 2);
  CHECK(f.scheduler->find(f.job.job.id)->job.shown().note() == "9 GiB are needed");
}

TEST_CASE("a job is not sent back to the GPU that it does not fit on whatever that offers meanwhile") {
  BucketJob f;
  f.offer(kNeededBytes);
  f.say_smaller(3072);
  CHECK(f.link.leases.at(1).job.question.problem == problem_of(3072));
}

TEST_CASE("a job that does not fit on the GPU with room for it either shrinks and is not sent back") {
  OtherGpu f(kNeededBytes);
  f.say_smaller(3072);
  f.offer(kNeededBytes);
  const Lease lease = f.other.leases.at(0);
  WorkResult smaller;
  smaller.told.set_status(v1::JobResult::SMALLER);
  smaller.smaller_problem = problem_of(3072);
  smaller.told.set_needs_bytes(kNeededBytes);
  CHECK(f.scheduler->finish(f.agent + 1, lease.id, lease.fence, smaller));
  CHECK(f.scheduler->open_jobs().at(0).job.state == v1::Job::RUNNING);
  CHECK(f.link.leases.size() + f.other.leases.size() == 3);
  CHECK((f.link.leases.size() == 2 ? f.link : f.other).leases.back().job.question.problem ==
        problem_of(3072));
}

TEST_CASE("a Tune that cannot be stored leaves the job for its bucket as it is") {
  BucketJob f;
  {
    const FullDisk full(0);
    CHECK_THROWS_AS(f.submit(4096), Error);
  }
  CHECK(f.scheduler->find(f.job.job.id)->job.fact.for_bucket());
}

TEST_CASE("a job that is tried again and succeeds is no longer out of memory after a restart") {
  BucketJob f;
  f.fail_for_memory_and_succeed();
  f.restart();
  CHECK_FALSE(f.blocked());
}

}  // namespace
}  // namespace cubind::test
