// What is measured again: provisional records, retunes, series of samples.
#include <catch2/catch.hpp>

#include "tests/support/facts.hpp"
#include "tests/unit/server/scheduler_fixture.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a contended record is provisional") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  const Lease lease = f.link.leases.at(0);
  f.scheduler->store_batch(agent, lease.id, lease.fence, f.batch("a"));
  WorkResult result = f.done("a");
  result.record.timing.set_contended(true);
  f.scheduler->finish(agent, lease.id, lease.fence, result);
  CHECK(f.index.snapshot()->all().at(0)->provisional);
}

struct Contended : SchedulerFixture {
  /// A job ends with a record that was measured next to a foreign process.
  Contended() {
    agent = scheduler->agent_joined(agent_with("always"), link);
    submit();
    scheduler->store_batch(agent, link.leases[0].id, link.leases[0].fence, batch("a"));
    WorkResult result = done("a");
    result.record.timing.set_contended(true);
    scheduler->finish(agent, link.leases[0].id, link.leases[0].fence, result);
  }
  void hand_back(const Lease& lease) {
    v1::Progress progress;
    progress.set_state(v1::Job::WAITING_FOR_IDLE_GPU);
    scheduler->progress(agent, lease.id, lease.fence, progress);
    WorkResult back;
    back.told.set_status(v1::JobResult::INTERRUPTED);
    scheduler->finish(agent, lease.id, lease.fence, back);
  }
  std::uint64_t agent = 0;
};

TEST_CASE("a provisional record is measured again when the GPU is idle") {
  Contended f;
  REQUIRE(f.link.leases.size() == 2);
  const Lease again = f.link.leases[1];
  CHECK(again.only_when_idle);
  CHECK_FALSE(f.link.leases[0].only_when_idle);
  CHECK(again.job.key == f.link.leases[0].job.key);
  f.scheduler->finish(f.agent, again.id, again.fence, f.done("a"));
  REQUIRE(f.index.snapshot()->record_count().all == 1);
  CHECK_FALSE(f.index.snapshot()->all().at(0)->provisional);
  CHECK(f.scheduler->open_jobs().empty());
}

TEST_CASE("a GPU that is in use is looked at again after a while and no attempt counts as an interruption") {
  Contended f;
  for (int i = 0; i < 20; ++i) {
    f.hand_back(f.link.leases.back());
    CHECK(f.state() == v1::Job::WAITING_FOR_IDLE_GPU);
    const std::size_t leases = f.link.leases.size();
    f.clock.advance(9s);
    f.scheduler->tick();
    CHECK(f.link.leases.size() == leases);
    f.clock.advance(1s);
    f.scheduler->tick();
    REQUIRE(f.link.leases.size() == leases + 1);
  }
  CHECK(f.scheduler->open_jobs().at(0).job.fact.interruptions() == 0);
}

TEST_CASE("what has an answer already is measured again after everything else") {
  Contended f;
  f.submit(1024);
  f.submit(64);
  f.hand_back(f.link.leases[1]);
  f.clock.advance(20s);
  const Lease other = f.link.leases.at(2);
  CHECK(other.job.question.problem == problem_of(1024));
  WorkResult failed;
  failed.told.set_status(v1::JobResult::FAILED);
  f.scheduler->finish(f.agent, other.id, other.fence, failed);
  CHECK(f.link.leases.at(3).job.question.problem == problem_of(64));
}

TEST_CASE("a provisional record is measured again after a restart") {
  Contended f;
  f.scheduler->cancel(f.link.leases[1].job.id);
  f.scheduler = f.make();
  f.scheduler->load();
  REQUIRE(f.scheduler->open_jobs().size() == 1);
  CHECK(f.scheduler->open_jobs().at(0).job.key == f.link.leases[0].job.key);
}

TEST_CASE("a retune of a provisional record waits for no idle GPU") {
  Contended f;
  f.hand_back(f.link.leases[1]);
  f.submit_tune(f.question(4096), h200_class(), true);
  CHECK_FALSE(f.link.leases.at(2).only_when_idle);
}

TEST_CASE("a retune that meets an open job makes it one and what it has measured does not count") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  const std::string id = f.submit().job.id;
  const Lease lease = f.link.leases.at(0);
  f.scheduler->store_batch(agent, lease.id, lease.fence, f.batch("a"));
  CHECK(f.submit_tune(f.question(4096), h200_class(), true).job.id == id);
  CHECK(f.link.ended == std::vector{lease.id});
  REQUIRE(f.link.leases.size() == 2);
  CHECK(f.link.leases[1].job.fact.retune());
  CHECK(f.link.leases[1].blocks.empty());
  CHECK_FALSE(f.scheduler->finish(agent, lease.id, lease.fence, f.done("a")));
  f.submit_tune(f.question(4096), h200_class(), true);
  CHECK(f.link.leases.size() == 2);
}

struct MeasuredAt700Watt : SchedulerFixture {
  MeasuredAt700Watt() {
    agent = scheduler->agent_joined(offering(700'000), link);
    submit();
    scheduler->store_batch(agent, link.leases[0].id, link.leases[0].fence, batch("a"));
    WorkResult result = done("a");
    result.record.timing.set_power_limit_mw(700'000);
    scheduler->finish(agent, link.leases[0].id, link.leases[0].fence, result);
  }
  static AgentProfile offering(std::uint32_t power_limit_mw) {
    AgentProfile profile = agent_with();
    profile.devices[0].device.facts.set_power_limit_mw(power_limit_mw);
    return profile;
  }
  std::uint64_t agent = 0;
};

TEST_CASE("samples under another power limit are not those of a record under today's") {
  MeasuredAt700Watt f;
  f.submit();
  CHECK(f.link.leases.at(1).blocks.size() == 1);
  f.scheduler->cancel(f.link.leases[1].job.id);
  f.scheduler->agent_devices(f.agent, f.offering(500'000).devices);
  f.submit();
  CHECK(f.link.leases.at(2).blocks.empty());
  CHECK(f.link.leases.at(2).job.fact.series() == f.link.leases[1].job.fact.series() + 1);
}

TEST_CASE("jobs of one problem for other numerics share the samples of the newest series") {
  MeasuredAt700Watt f;
  RecordQuestion question = f.question(4096);
  question.numerics.kind = Numerics::Kind::Reproducible;
  f.submit_tune(question, h200_class(), false);
  CHECK(f.link.leases.at(1).blocks.size() == 1);
  f.scheduler->cancel(f.link.leases[1].job.id);
  f.submit_tune(question, h200_class(), true);
  f.scheduler->cancel(f.link.leases[2].job.id);
  f.submit();
  CHECK(f.link.leases.at(3).job.fact.series() == f.link.leases[2].job.fact.series());
}

TEST_CASE("a job that was queued before a retune for other numerics takes up the newer series") {
  SchedulerFixture f;
  f.scheduler->agent_joined(agent_with(), f.link);
  f.submit(1024);
  CHECK(f.submit(4096).job.fact.series() == 0);
  RecordQuestion reproducible = f.question(4096);
  reproducible.numerics.kind = Numerics::Kind::Reproducible;
  CHECK(f.submit_tune(reproducible, h200_class(), true).job.fact.series() == 1);
  f.scheduler->cancel(f.link.leases.at(0).job.id);
  CHECK(f.link.leases.at(1).job.fact.series() == 1);
}

struct Budgeted : SchedulerFixture {
  JobEvent tune(std::optional<SearchBudget> budget) {
    return scheduler->submit_tunes({{question(4096), h200_class(), false, budget}}, false).at(0);
  }
};

TEST_CASE("a larger budget takes over the open job and keeps what it has measured") {
  Budgeted f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  const std::string id = f.tune(SearchBudget{20, 0}).job.id;
  const Lease first = f.link.leases.at(0);
  CHECK(first.job.budget == SearchBudget{20, 0});
  f.scheduler->store_batch(agent, first.id, first.fence, f.batch("a"));
  CHECK(f.tune(SearchBudget{10, 0}).job.id == id);
  CHECK(f.tune(std::nullopt).job.id == id);  // a miss takes what is under way
  CHECK(f.link.leases.size() == 1);
  CHECK(f.tune(SearchBudget{50, 0}).job.id == id);
  CHECK(f.link.ended == std::vector{first.id});
  REQUIRE(f.link.leases.size() == 2);
  CHECK(f.link.leases[1].job.budget == SearchBudget{50, 0});
  CHECK(f.link.leases[1].job.fact.series() == first.job.fact.series());
  CHECK(f.link.leases[1].blocks.size() == 1);
  f.tune(SearchBudget{});  // the default is more than 50
  CHECK(f.link.leases.size() == 3);
}

TEST_CASE("a budget and the times of stages outlive the daemon") {
  Budgeted f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  const std::string id = f.tune(SearchBudget{20, 2.5}).job.id;
  for (std::size_t lease = 0; lease < 2; ++lease) {
    WorkResult back;
    back.told.set_status(v1::JobResult::INTERRUPTED);
    *back.told.add_stages() = stage_time("compiling", 10);
    *back.told.add_stages() = stage_time("screening", 5);
    const Lease now = f.link.leases.back();
    REQUIRE(f.scheduler->finish(agent, now.id, now.fence, back));
    f.clock.advance(1s);
    f.scheduler->tick();  // the next lease: the job's row is stored with it
  }
  f.scheduler = f.make();
  f.scheduler->load();
  const JobRow job = f.scheduler->find(id)->job;
  CHECK(job.budget == SearchBudget{20, 2.5});
  CHECK(std::vector(job.shown().stages().begin(), job.shown().stages().end()) ==
        std::vector{stage_time("compiling", 20), stage_time("screening", 10)});
}

TEST_CASE("a choice as if nothing were known outlives the daemon as a job of its own") {
  SchedulerFixture f;
  f.scheduler->agent_joined(agent_with("never"), f.link);  // its device class is known from then on
  const TuneOrder order{.question = f.question(4096), .device = h200_class(), .from_scratch = true};
  const std::string id = f.scheduler->submit_tunes({order}, false).at(0).job.id;
  f.scheduler = f.make();
  f.scheduler->load();
  REQUIRE(f.scheduler->find(id));
  CHECK(f.scheduler->find(id)->job.fact.from_scratch());
  CHECK(f.scheduler->submit_tunes({order}, false).at(0).job.id == id);
  CHECK(f.submit().job.id != id);
}

TEST_CASE("a record keeps what was searched for it") {
  Budgeted f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  const Lease lease = f.link.leases.at(0);
  f.scheduler->store_batch(agent, lease.id, lease.fence, f.batch("a"));
  WorkResult result = f.done("a");
  result.record.search = search_of(Digest::of("space"), kModelSearch, 300, 60, false);
  f.scheduler->finish(agent, lease.id, lease.fence, result);
  CHECK(f.index.snapshot()->all().at(0)->search == result.record.search);
}

}  // namespace
}  // namespace cubind::test
