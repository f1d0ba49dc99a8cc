// The job queue: which jobs there are, and what becomes of one.
#include <catch2/catch.hpp>

#include "tests/unit/server/scheduler_fixture.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("of jobs whose trials are the same one is measured at a time") {
  SchedulerFixture f;
  AgentProfile two = agent_with();
  two.devices.push_back(two.devices[0]);
  two.devices[1].uuid = "GPU-2";
  const auto agent = f.scheduler->agent_joined(two, f.link);
  f.submit(4096);
  RecordQuestion elsewhere = f.question(4096);
  elsewhere.name_space = "elsewhere";
  f.submit_tune(elsewhere, h200_class(), false);
  REQUIRE(f.link.leases.size() == 1);

  SECTION("those of other problems take the other GPU") {
    f.submit(1024);
    REQUIRE(f.link.leases.size() == 2);
    CHECK(f.link.leases.at(1).job.question.problem == problem_of(1024));
  }
  SECTION("and the next begins with what the first has found") {
    const Lease first = f.link.leases.at(0);
    f.scheduler->store_batch(agent, first.id, first.fence, f.batch("a"));
    f.scheduler->finish(agent, first.id, first.fence, f.done("a"));
    REQUIRE(f.link.leases.size() == 2);
    CHECK(f.link.leases.at(1).job.question.name_space == "elsewhere");
    CHECK(f.link.leases.at(1).trials.size() == 1);
  }
}

TEST_CASE("the time of a running job is how long it has been running so far") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  f.clock.advance(3s);
  const auto elapsed = [&] { return f.scheduler->open_jobs().at(0).job.shown().elapsed_ms(); };
  CHECK(elapsed() == 3000);
  f.scheduler->agent_left(agent);
  f.clock.advance(5s);
  CHECK(elapsed() == 3000);
  f.scheduler->agent_joined(agent_with(), f.link);
  f.scheduler->tick();
  f.clock.advance(2s);
  CHECK(elapsed() == 5000);
}

TEST_CASE("no more is done of a job than there is") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit(4096);
  v1::Progress progress;
  progress.set_configurations(10);
  progress.set_configurations_done(4'000'000'000);
  f.scheduler->progress(agent, f.link.leases.at(0).id, f.link.leases.at(0).fence, progress);
  CHECK(f.scheduler->open_jobs().at(0).job.shown().configurations_done() == 10);
}

TEST_CASE("a job queued behind one that waits for an idle GPU waits for the same") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit(4096);
  f.submit(1024);
  const auto second = [&] { return f.scheduler->open_jobs().at(1).job.state; };
  CHECK(second() == v1::Job::QUEUED);
  v1::Progress progress;
  progress.set_state(v1::Job::WAITING_FOR_IDLE_GPU);
  const Lease lease = f.link.leases.at(0);
  f.scheduler->progress(agent, lease.id, lease.fence, progress);
  CHECK(second() == v1::Job::WAITING_FOR_IDLE_GPU);
  CHECK(f.submit(64).job.state == v1::Job::WAITING_FOR_IDLE_GPU);
  progress.set_state(v1::Job::RUNNING);
  f.scheduler->progress(agent, lease.id, lease.fence, progress);
  CHECK(second() == v1::Job::QUEUED);
}

TEST_CASE("a job waits for an idle GPU only where no other GPU of its class can take it") {
  SchedulerFixture f;
  AgentProfile two = agent_with();
  two.devices.push_back(two.devices[0]);
  two.devices[1].uuid = "GPU-2";
  const auto agent = f.scheduler->agent_joined(two, f.link);
  for (const std::int64_t n : {4096, 1024, 64}) {
    f.submit(n);
  }
  v1::Progress progress;
  progress.set_state(v1::Job::WAITING_FOR_IDLE_GPU);
  const auto third = [&] { return f.scheduler->open_jobs().at(2).job.state; };
  f.scheduler->progress(agent, f.link.leases.at(0).id, 1, progress);
  CHECK(third() == v1::Job::QUEUED);
  f.scheduler->progress(agent, f.link.leases.at(1).id, 1, progress);
  CHECK(third() == v1::Job::WAITING_FOR_IDLE_GPU);
}

TEST_CASE("a finished job writes its record publishes it and tells its watchers with it") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  RecordPtr told;
  f.scheduler->watch(f.submit().job.id, [&](const JobEvent& event) { told = event.record; });
  const Lease lease = f.link.leases.at(0);
  REQUIRE(f.scheduler->store_batch(agent, lease.id, lease.fence, f.batch("a")));
  REQUIRE(f.scheduler->finish(agent, lease.id, lease.fence, f.done("a")));
  REQUIRE(told);
  CHECK(told->evidence == Evidence::Measured);
  CHECK(f.index.snapshot()->record_count().all == 1);
  CHECK(f.scheduler->open_jobs().empty());
}

TEST_CASE("a finished job is reported with its own record where an imported one has the same trial") {
  SchedulerFixture f;
  RecordRow imported = record_row(4096, 999.0);
  imported.question = f.question(4096);
  imported.trial = f.trial("a").key.digest;
  imported.evidence = Evidence::Imported;
  f.store->write([&](StoreWriter& writer) {
    writer.put_device_class(h200_class());
    writer.put_record(imported);
  });
  f.index.load(*f.store);
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  RecordPtr told;
  f.scheduler->watch(f.submit().job.id, [&](const JobEvent& event) { told = event.record; });
  const Lease lease = f.link.leases.at(0);
  f.scheduler->store_batch(agent, lease.id, lease.fence, f.batch("a"));
  f.scheduler->finish(agent, lease.id, lease.fence, f.done("a"));
  REQUIRE(told);
  CHECK(told->evidence == Evidence::Measured);
  CHECK(told->job_id == lease.job.id);
}

TEST_CASE("a job that has failed is remembered for a while so that misses do not repeat it") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  const Digest key = f.submit().job.key;
  WorkResult failed;
  failed.told.set_status(v1::JobResult::FAILED);
  failed.told.set_error("no configuration survived");
  f.scheduler->finish(agent, f.link.leases[0].id, f.link.leases[0].fence, failed);
  CHECK(f.scheduler->failed_lately(key) == "no configuration survived");
  f.clock.advance(11min);
  CHECK_FALSE(f.scheduler->failed_lately(key));
}

TEST_CASE("jobs that ended long ago are forgotten as others end") {
  SchedulerFixture f;
  f.options.forget_after = 2;
  f.scheduler = f.make();
  const auto known = [&](const std::string& id) {
    bool found = false;
    f.store->write([&](StoreWriter& writer) { found = writer.job(id).has_value(); });
    return found;
  };
  const std::string old = f.submit().job.id;
  f.scheduler->cancel(old);
  f.clock.advance(std::chrono::days(31));
  f.scheduler->tick();
  CHECK(known(old));
  const std::string young = f.submit().job.id;
  f.scheduler->cancel(young);
  f.scheduler->tick();
  CHECK_FALSE(known(old));
  CHECK(known(young));
}

TEST_CASE("the queue has a limit with a clear error") {
  SchedulerFixture f;
  f.options.queue_limit = 1;
  f.scheduler = f.make();
  f.submit(4096);
  CHECK_THROWS_WITH(f.submit(1024), Catch::Matchers::Contains("holds 1 jobs"));
  CHECK_NOTHROW(f.submit(4096));
}

TEST_CASE("a caller with many compiles keeps another's waiting for one place") {
  SchedulerFixture f;
  CompileOrder order{f.question(4096), h200_class(), {}, {{}}, "sm_90", 13000};
  const auto submit = [&](const std::string& name, const std::string& caller) {
    order.key = Digest::of(name);
    f.scheduler->submit_compile(order, caller);
    return order.key;
  };
  for (int i = 0; i < 10; ++i) {
    submit("a" + std::to_string(i), "a");
  }
  const Digest other = submit("b", "b");
  f.scheduler->agent_joined(agent_with(), f.link);
  REQUIRE(f.link.leases.size() == f.options.compile_leases);
  CHECK(f.link.leases[1].job.key == other);
}

TEST_CASE("a caller's jobs count in its limits until they end") {
  SchedulerFixture f;
  CallerLimits limits;
  f.options.limits = &limits;
  f.scheduler = f.make();
  const TuneOrder order{.question = f.question(4096), .device = h200_class(), .caller = "a"};
  const std::string id = f.scheduler->submit_tunes({order}, false).front().job.id;
  f.scheduler->submit_tunes({order}, false);
  CHECK(limits.held("a", Held::Jobs) == 1);
  const auto rest = limits.take("a", Held::Jobs, kCallerLimits[3].most - 1);
  CHECK_THROWS_WITH(
      f.scheduler->submit_tunes({{.question = f.question(64), .device = h200_class(), .caller = "a"}}, false),
      Catch::Contains("jobs"));
  f.scheduler->cancel(id);
  CHECK(limits.held("a", Held::Jobs) == kCallerLimits[3].most - 1);
  f.scheduler.reset();
}

TEST_CASE("a compile job goes to an agent whose toolchain knows the architecture and suits the driver") {
  SchedulerFixture f;
  f.scheduler->agent_joined(agent_with(), f.link);
  CompileOrder order{f.question(4096), h200_class(), Digest::of("a"), {{}}, "sm_90", 12080};
  CHECK(f.scheduler->submit_compile(order).job.state == v1::Job::NO_DEVICE);
  order.key = Digest::of("b");
  order.driver_cuda = 13000;
  CHECK(f.scheduler->submit_compile(order).job.state == v1::Job::RUNNING);
  order.key = Digest::of("c");
  order.architecture = "sm_120";
  CHECK(f.scheduler->submit_compile(order).job.state == v1::Job::NO_DEVICE);
}

TEST_CASE("draining asks every agent for its leases and refuses new jobs") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  f.scheduler->drain();
  CHECK(f.link.drained);
  CHECK_FALSE(f.scheduler->leases().held().empty());
  WorkResult back;
  back.told.set_status(v1::JobResult::INTERRUPTED);
  f.scheduler->finish(agent, f.link.leases[0].id, f.link.leases[0].fence, back);
  CHECK(f.scheduler->leases().held().empty());
  CHECK_THROWS_AS(f.submit(1024), Error);
}

}  // namespace
}  // namespace cubind::test
