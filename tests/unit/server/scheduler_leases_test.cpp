// Which agent gets which lease and with what, how a lease ends, and which job comes next.
#include <catch2/catch.hpp>

#include "server/defined_kernels.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/support/triton_spec.hpp"
#include "tests/unit/server/scheduler_fixture.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("another agent's lease is refused though lease and fence are right") {
  SchedulerFixture f;
  RecordingLink other_link;
  const auto owner = f.scheduler->agent_joined(agent_with(), f.link);
  const auto other = f.scheduler->agent_joined(agent_with("never"), other_link);
  f.submit();
  const Lease lease = f.link.leases.at(0);
  CHECK_FALSE(f.scheduler->heartbeat(other, lease.id, lease.fence));
  CHECK_FALSE(f.scheduler->store_batch(other, lease.id, lease.fence, f.batch("a")));
  CHECK_FALSE(f.scheduler->finish(other, lease.id, lease.fence, {}));
  CHECK(other_link.ended.size() == 3);
  CHECK(f.link.ended.empty());
  CHECK(f.scheduler->heartbeat(owner, lease.id, lease.fence));
}

TEST_CASE("a fence grows over a restart of the daemon") {
  SchedulerFixture f;
  f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  f.scheduler = f.make();
  f.scheduler->load();
  f.scheduler->agent_joined(agent_with(), f.link);
  REQUIRE(f.link.leases.size() == 2);
  CHECK(f.link.leases[1].job.id == f.link.leases[0].job.id);
  CHECK(f.link.leases[1].fence > f.link.leases[0].fence);
}

TEST_CASE("what a job's search begins with stays the same over its leases and a restart") {
  SchedulerFixture f;
  RecordRow winner = record_row(2048);
  winner.question = f.question(2048);
  winner.configuration = {{{"THREADS", 512}, {"VECTOR", 4}, {"UNROLL", 1}}};
  const auto store = [&](const RecordRow& row) {
    f.store->write([&](StoreWriter& writer) {
      writer.put_device_class(h200_class());
      writer.put_record(row);
    });
    f.index.load(*f.store);
  };
  store(winner);
  f.submit(4096);
  f.scheduler->agent_joined(agent_with(), f.link);
  REQUIRE(f.link.leases.size() == 1);
  CHECK(f.link.leases[0].job.hints == std::vector{winner.configuration});
  RecordRow later = winner;
  later.question = f.question(8192);
  later.configuration.values[0].value = 128;
  store(later);
  f.scheduler = f.make();
  f.scheduler->load();
  f.scheduler->agent_joined(agent_with(), f.link);
  REQUIRE(f.link.leases.size() == 2);
  CHECK(f.link.leases[1].job.hints == std::vector{winner.configuration});
}

TEST_CASE("a search begins with its neighbour's winner and then with what was screened fastest for it") {
  SchedulerFixture f;
  RecordRow winner = record_row(2048);
  winner.question = f.question(2048);
  const auto with_threads = [](std::int64_t threads) {
    return Configuration{{{"THREADS", threads}, {"VECTOR", 4}, {"UNROLL", 1}}};
  };
  winner.configuration = with_threads(128);
  f.store->write([&](StoreWriter& writer) {
    writer.put_device_class(h200_class());
    writer.put_record(winner);
    // The means of its two blocks: 512 is slower than 256, though its first block was faster.
    for (const auto& [threads, outcome, least_us] :
         {std::tuple(256, Outcome::Correct, 21.0), std::tuple(512, Outcome::Unverified, 20.0),
          std::tuple(1024, Outcome::WrongResult, 10.0), std::tuple(128, Outcome::Correct, 30.0)}) {
      TrialRow trial = trial_row(std::to_string(threads), 2048);
      trial.configuration = with_threads(threads);
      trial.outcome = outcome;
      writer.put_trial(trial);
      for (const unsigned index : {0, 1}) {
        BlockRow block = block_row(trial, index);
        block.mutable_block()->set_stage(v1::SampleBlock::SCREEN);
        block.mutable_block()->clear_samples_us();
        block.mutable_block()->add_samples_us(least_us + (threads == 512 ? 4 * index : 0));
        writer.put_block(block);
      }
      writer.put_block(block_row(trial, 0));  // a final's
    }
  });
  f.index.load(*f.store);
  f.submit(4096);
  f.scheduler->agent_joined(agent_with(), f.link);
  REQUIRE(f.link.leases.size() == 1);
  CHECK(f.link.leases[0].job.hints == std::vector{with_threads(128), with_threads(256), with_threads(512)});
}

TEST_CASE("a job that fails while it is granted comes back with its error") {
  SchedulerFixture f;
  f.scheduler->agent_joined(agent_with(), f.link);
  RecordQuestion question = f.question(4096);
  question.interface = Digest::of("another");
  const JobEvent event = f.submit_tune(question, h200_class(), false);
  CHECK(event.job.state == v1::Job::FAILED);
  CHECK_THAT(event.job.shown().error(), Catch::Matchers::Contains("its interface has changed"));
}

TEST_CASE("whatever goes wrong with granting one job the queue goes on") {
  SchedulerFixture f;
  f.scheduler->agent_joined(agent_with(), f.link);
  f.link.fails_once = true;
  CHECK(f.submit(4096).job.state == v1::Job::FAILED);
  CHECK(f.submit(1024).job.state == v1::Job::RUNNING);
}

TEST_CASE("a job that is handed back is granted again after a pause that grows") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  WorkResult back;
  back.told.set_status(v1::JobResult::INTERRUPTED);
  auto pause = 250ms;
  for (std::size_t leases = 1; leases < 9; ++leases, pause = std::min(2 * pause, 30'000ms)) {
    const Lease lease = f.link.leases.back();
    f.scheduler->finish(agent, lease.id, lease.fence, back);
    f.clock.advance(pause - 1ms);
    f.scheduler->tick();
    CHECK(f.link.leases.size() == leases);
    f.clock.advance(1ms);
    f.scheduler->tick();
    REQUIRE(f.link.leases.size() == leases + 1);
  }
  CHECK(pause == 30'000ms);
}

TEST_CASE("a job that cannot be granted for what passes is tried again after a second") {
  SchedulerFixture f;
  f.scheduler->agent_joined(agent_with(), f.link);
  f.link.refuses_once = Error(ErrorCode::Unavailable, "store", "is busy");
  CHECK(f.submit().job.state == v1::Job::QUEUED);
  f.clock.advance(999ms);
  f.scheduler->tick();
  CHECK(f.link.leases.empty());
  f.clock.advance(1ms);
  f.scheduler->tick();
  CHECK(f.link.leases.size() == 1);
}

TEST_CASE("a job that is interrupted too often in a row has failed and one that stores goes on") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  for (int i = 0; i < 12; ++i) {
    const Lease lease = f.link.leases.back();
    f.scheduler->store_batch(agent, lease.id, lease.fence, f.batch("a"));
    f.clock.advance(31s);
    f.scheduler->tick();
    f.clock.advance(31s);
    f.scheduler->tick();
  }
  CHECK(f.scheduler->open_jobs().size() == 1);
  for (int i = 0; i < 25; ++i) {
    f.clock.advance(31s);
    f.scheduler->tick();
  }
  CHECK(f.scheduler->open_jobs().empty());
}

TEST_CASE("a job whose agents were refused too often fails with what they had sent") {
  SchedulerFixture f;
  const std::string id = f.submit().job.id;
  for (int i = 0; i < 10; ++i) {
    const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
    f.scheduler->agent_left(agent, "batch.blocks[0]: is none");
    f.clock.advance(31s);
  }
  CHECK(f.scheduler->open_jobs().empty());
  std::optional<JobRow> job;
  f.store->read([&](StoreReader& reader) { job = reader.job(id); });
  REQUIRE(job);
  CHECK_THAT(job->shown().error(), Catch::Matchers::EndsWith("because batch.blocks[0]: is none"));
}

TEST_CASE("a job whose trials found no room goes on within a second, however often that was") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  for (std::size_t leases = 1; leases < 13; ++leases) {
    const Lease lease = f.link.leases.back();
    {
      const FullDisk full(0);
      CHECK_FALSE(f.scheduler->store_batch(agent, lease.id, lease.fence, f.batch("a")));
    }
    CHECK(f.state() == v1::Job::QUEUED);
    f.clock.advance(1s);
    f.scheduler->tick();
    REQUIRE(f.link.leases.size() == leases + 1);
  }
  const Lease lease = f.link.leases.back();
  CHECK(f.scheduler->store_batch(agent, lease.id, lease.fence, f.batch("a")));
}

TEST_CASE("an imported record is never the incumbent and a measured one is") {
  SchedulerFixture f;
  RecordRow row = record_row(4096);
  row.question = f.question(4096);
  row.evidence = Evidence::Imported;
  f.store->write([&](StoreWriter& writer) {
    writer.put_device_class(h200_class());
    writer.put_record(row);
  });
  f.index.load(*f.store);
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  CHECK(f.link.leases.at(0).incumbent == nullptr);
  f.scheduler->store_batch(agent, f.link.leases[0].id, f.link.leases[0].fence, f.batch("a"));
  f.scheduler->finish(agent, f.link.leases[0].id, f.link.leases[0].fence, f.done("a"));
  f.submit();
  CHECK(f.link.leases.at(1).incumbent->trial == f.trial("a").key.digest);
}

TEST_CASE("a winner of another flush method is no incumbent of a search and one of today's is") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  RecordRow old = record_row(4096);
  old.question = f.question(4096);
  old.question.policy.flush_method = kFlushMethod - 1;
  f.store->write([&](StoreWriter& writer) {
    writer.put_device_class(h200_class());
    writer.put_record(old);
  });
  f.index.load(*f.store);
  f.submit();
  CHECK(f.link.leases.at(0).incumbent == nullptr);
  f.scheduler->store_batch(agent, f.link.leases[0].id, f.link.leases[0].fence, f.batch("a"));
  f.scheduler->finish(agent, f.link.leases[0].id, f.link.leases[0].fence, f.done("a"));
  CHECK(f.index.snapshot()->record_count().all == 2);
  f.submit();
  CHECK(f.link.leases.at(1).incumbent->trial == f.trial("a").key.digest);
}

TEST_CASE("an agent learns which job comes next on its GPU") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit(4096);
  CHECK(f.link.announced.empty());
  f.submit(1024);
  f.submit(64);
  REQUIRE(f.link.announced.size() == 1);
  CHECK(f.link.announced[0].job.question.problem == f.question(1024).problem);
  CHECK(f.link.announced[0].gpu_uuid == "GPU-1");
  WorkResult failed;
  failed.told.set_status(v1::JobResult::FAILED);
  REQUIRE(f.scheduler->finish(agent, f.link.leases.at(0).id, f.link.leases[0].fence, failed));
  REQUIRE(f.link.leases.size() == 2);
  REQUIRE(f.link.announced.size() == 2);
  CHECK(f.link.announced[1].job.question.problem == f.question(64).problem);
}

TEST_CASE("a job that waits for an idle GPU is announced behind one that a caller asked for") {
  SchedulerFixture f;
  TuneOrder idle{f.question(1024), h200_class()};
  idle.listed = {{{{"THREADS", 256}, {"VECTOR", 4}, {"UNROLL", 1}}}};
  f.scheduler->submit_tunes({idle}, false);
  f.submit(4096);
  f.submit(64);
  f.scheduler->agent_joined(agent_with(), f.link);
  REQUIRE(f.link.leases.size() == 1);
  CHECK(f.link.leases[0].job.question.problem == f.question(4096).problem);
  REQUIRE(f.link.announced.size() == 1);
  CHECK(f.link.announced[0].job.question.problem == f.question(64).problem);
}

TEST_CASE("a job is announced to no agent that does not compile its language") {
  SchedulerFixture f;
  const auto rows = TritonSpec().parse();
  DefinedKernels defined(f.folder.path() / "defined");
  defined.add(*rows);
  VectorAddLibrary kernels(f.clock, defined.folder());
  Scheduler scheduler(*f.store, f.index, kernels, f.clock);
  scheduler.agent_joined(agent_with(), f.link);
  scheduler.submit_tunes({{f.question(4096), h200_class()}}, false);
  RecordQuestion question = f.question(64);
  question.kernel = rows->name;
  question.interface = kernels.find(rows->name)->interface;
  CHECK(scheduler.submit_tunes({{question, h200_class()}}, false)[0].job.state == v1::Job::NO_DEVICE);
  CHECK(f.link.announced.empty());
  scheduler.submit_tunes({{f.question(1024), h200_class()}}, false);
  REQUIRE(f.link.announced.size() == 1);
  CHECK(f.link.announced[0].job.question.kernel == "vector_add");
}

TEST_CASE("a lease and an announcement say whether a caller waits for the job") {
  SchedulerFixture f;
  TuneOrder awaited{f.question(4096), h200_class()};
  awaited.awaited = true;
  f.scheduler->submit_tunes({awaited, {f.question(64), h200_class()}}, false);
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  REQUIRE(f.link.announced.size() == 1);
  CHECK(f.link.announced[0].background);
  REQUIRE(f.scheduler->finish(agent, f.link.leases.at(0).id, f.link.leases[0].fence, f.failed()));
  REQUIRE(f.link.leases.size() == 2);
  CHECK_FALSE(f.link.leases[0].background);
  CHECK(f.link.leases[1].background);
}

TEST_CASE("a job that a caller waits for is granted before older ones without one") {
  SchedulerFixture f;
  f.submit(64);
  f.submit(1024);
  const std::string late = f.submit(4096).job.id;
  f.scheduler->await(late);
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  REQUIRE(f.link.leases.size() == 1);
  CHECK(f.link.leases[0].job.id == late);
  CHECK(f.link.announced.at(0).job.question.problem == f.question(64).problem);
  REQUIRE(f.scheduler->finish(agent, f.link.leases.at(0).id, f.link.leases[0].fence, f.failed()));
  REQUIRE(f.link.leases.size() == 2);
  CHECK(f.link.leases[1].job.question.problem == f.question(64).problem);
}

TEST_CASE("an agent is notified once when a caller begins to wait for a job that it works on") {
  SchedulerFixture f;
  f.scheduler->agent_joined(agent_with(), f.link);
  const std::string job = f.submit().job.id;
  REQUIRE(f.link.leases.at(0).background);
  CHECK(f.link.told_awaited.empty());
  f.scheduler->await(job);
  f.scheduler->await(job);
  CHECK(f.link.told_awaited == std::vector{f.link.leases[0].id});
  f.scheduler->await("no such job");
}

TEST_CASE("a job that is asked for again is awaited from then on, also under its next lease") {
  SchedulerFixture f;
  const auto agent = f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  TuneOrder again{f.question(4096), h200_class()};
  again.awaited = true;
  f.scheduler->submit_tunes({again}, false);
  CHECK(f.link.told_awaited == std::vector{f.link.leases.at(0).id});
  f.scheduler->agent_left(agent);
  f.clock.advance(1s);
  f.scheduler->agent_joined(agent_with(), f.link);
  REQUIRE(f.link.leases.size() == 2);
  CHECK_FALSE(f.link.leases[1].background);
}

}  // namespace
}  // namespace cubind::test
