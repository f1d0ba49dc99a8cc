// Daemons on one database: their schedulers, indexes and fences. Each has a store, a scheduler and an agent.
#include <catch2/catch.hpp>

#include <future>
#include <thread>

#include "server/lookup/pins.hpp"
#include "server/store/peers.hpp"
#include "server/store/postgresql/postgres_connection.hpp"
#include "tests/postgres/store/postgres_test_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/unit/server/scheduler_fixture.hpp"

namespace cubind::test {
namespace {

using namespace std::chrono_literals;

/// One of the daemons, in this process.
struct Member : SchedulerFixture {
  explicit Member(const std::string& url) : SchedulerFixture(url) { index.load(*store); }

  void join() { agent = scheduler->agent_joined(agent_with(), link); }
  void begin() { scheduler->load(); }
  const Lease& lease() {
    return link.leases.empty() ? throw std::logic_error("no lease") : link.leases.back();
  }
  bool store_batch(const Lease& lease, const std::string& name) {
    return scheduler->store_batch(agent, lease.id, lease.fence, batch(name));
  }
  bool finish(const Lease& lease, const std::string& name) {
    return scheduler->finish(agent, lease.id, lease.fence, done(name));
  }
  std::size_t records() { return index.snapshot()->all().size(); }
  /// The events of the job from now on.
  std::shared_ptr<std::vector<JobEvent>> watch(const std::string& job) {
    auto events = std::make_shared<std::vector<JobEvent>>();
    scheduler->watch(job, [events](const JobEvent& event) { events->push_back(event); });
    return events;
  }

  std::uint64_t agent = 0;
};

struct TwoDaemons {
  std::string url = postgres_server().create_database();
  Member a{url}, b{url};

  TwoDaemons() {
    a.begin();
    b.begin();
  }
  void execute(const std::string& sql) { store::PostgresConnection(url, "test").execute(sql); }
  std::int64_t number(const std::string& sql) {
    store::PostgresConnection connection(url, "test");
    store::Statement query = connection.query(sql);
    return query.step() ? query.integer() : 0;
  }
};

TEST_CASE("what one daemon stores is known to the others") {
  TwoDaemons f;
  std::atomic<int> calls{0};
  const store::Following following(*f.b.store->peers(), [&] { ++calls; });
  REQUIRE(eventually([&] { return calls > 0; }));
  f.a.store->write([&](StoreWriter& writer) {
    writer.put_device_class(h200_class());
    writer.put_record(record_row(4096));
  });
  const int before = calls;
  REQUIRE(eventually([&] { return calls > before; }));
  f.b.scheduler->catch_up();
  CHECK(f.b.records() == 1);
  CHECK(f.b.index.snapshot()->generation() == [&] {
    Generation now;
    f.a.store->read([&](StoreReader& reader) { now = reader.generation(); });
    return now;
  }());
}

TEST_CASE("what another daemon imports or forgets or compares is read as a whole or by question") {
  TwoDaemons f;
  const auto count = static_cast<std::int64_t>(GENERATE(3, 100));
  f.a.store->write([&](StoreWriter& writer) {
    writer.put_device_class(h200_class());
    for (std::int64_t n = 1; n <= count; ++n) {
      writer.put_record(record_row(n));
    }
  });
  f.b.scheduler->catch_up();
  CHECK(f.b.records() == static_cast<std::size_t>(count));
  const std::uint64_t published = f.b.index.published();
  f.b.scheduler->catch_up();
  CHECK(f.b.index.published() == published);
  const std::int64_t id = f.b.index.snapshot()->all().front()->id;
  f.execute("UPDATE records SET to_generation = 99 WHERE id = " + std::to_string(id));
  f.b.scheduler->catch_up();
  CHECK(f.b.records() == static_cast<std::size_t>(count) - 1);
}

TEST_CASE("a generation means the same at every daemon also before it has read of it") {
  TwoDaemons f;
  const auto measure = [&](double median_us) {
    f.a.store->write([&](StoreWriter& writer) {
      writer.put_device_class(h200_class());
      RecordRow row = record_row(4096);
      row.timing.set_median_us(median_us);
      writer.put_record(row);
    });
    f.a.scheduler->catch_up();
    return f.a.index.snapshot()->generation();
  };
  const Generation first = measure(20);
  const Generation second = measure(19);
  Pins at_a(*f.a.store, f.a.index), at_b(*f.b.store, f.b.index);
  REQUIRE(f.b.index.snapshot()->generation().number < first.number);
  for (const auto& [named, median_us] : {std::pair(first, 20.0), std::pair(second, 19.0)}) {
    for (Pins* pins : {&at_b, &at_a}) {
      const auto pinned = pins->snapshot("generation " + std::to_string(named.number), named);
      CHECK(pinned->generation() == named);
      REQUIRE(pinned->all().size() == 1);
      CHECK(pinned->all().front()->timing.median_us() == median_us);
    }
  }
  CHECK_THROWS_WITH(at_b.snapshot("job", Generation{second.store_id, second.number + 1}),
                    Catch::Contains("has not been yet, the newest is " + std::to_string(second.number)));
  CHECK(at_b.snapshot("train")->generation().number < first.number);
  CHECK(at_a.snapshot("train")->generation() == at_b.snapshot("train")->generation());
}

TEST_CASE("one key has one job whichever daemon is asked") {
  TwoDaemons f;
  const std::string first = f.a.submit().job.id;
  CHECK(f.b.submit().job.id == first);
  f.b.submit(1024);
  f.a.scheduler->catch_up();
  CHECK(f.a.scheduler->open_jobs().size() == 2);
  CHECK(f.number("SELECT count(*) FROM jobs") == 2);
}

TEST_CASE("a question of which a daemon has not read that another has answered it starts no job") {
  TwoDaemons f;
  f.a.join();
  const std::string job = f.a.submit().job.id;
  REQUIRE(f.a.store_batch(f.a.lease(), "a"));
  REQUIRE(f.a.finish(f.a.lease(), "a"));
  REQUIRE(f.b.records() == 0);
  const JobEvent asked = f.b.submit();
  CHECK(asked.job.id == job);
  CHECK(asked.job.state == v1::Job::DONE);
  REQUIRE(asked.record);
  CHECK(f.b.records() == 1);
  CHECK(f.b.scheduler->open_jobs().empty());
  CHECK(f.number("SELECT count(*) FROM jobs") == 1);
}

TEST_CASE("a wish that another daemon's job has not met starts a job although that one has just ended") {
  TwoDaemons f;
  f.a.join();
  const std::string job = f.a.submit().job.id;
  REQUIRE(f.a.store_batch(f.a.lease(), "a"));
  const bool is_done = GENERATE(true, false);
  REQUIRE(f.a.scheduler->finish(f.a.agent, f.a.lease().id, f.a.lease().fence,
                                is_done ? f.a.done("a") : SchedulerFixture::failed()));
  CHECK(f.b.submit_tune(f.b.question(4096), h200_class(), is_done).job.id != job);
}

TEST_CASE("a job is leased by one daemon and the next one by another whose agent is free") {
  TwoDaemons f;
  f.a.join();
  f.b.join();
  f.a.submit(4096);
  f.a.submit(1024);
  f.b.scheduler->catch_up();
  REQUIRE(f.a.link.leases.size() == 1);
  REQUIRE(f.b.link.leases.size() == 1);
  CHECK(f.a.lease().job.id != f.b.lease().job.id);
  f.a.scheduler->catch_up();
  CHECK(f.a.link.ended.empty());
  CHECK(f.a.scheduler->queue().running() == 2);
  CHECK(f.number("SELECT count(*) FROM jobs WHERE owner IS NOT NULL") == 2);
}

TEST_CASE("a daemon without a GPU waits for what another one measures and gets its record") {
  TwoDaemons f;
  f.b.join();
  REQUIRE(eventually([&] {
    return !f.a.store->peers()->alive().empty() && !f.a.store->peers()->alive().at(0).offer.classes.empty();
  }));
  const JobEvent asked = f.a.submit();
  CHECK(asked.job.state == v1::Job::QUEUED);
  const auto events = f.a.watch(asked.job.id);
  f.b.scheduler->catch_up();
  REQUIRE(f.b.store_batch(f.b.lease(), "a"));
  f.a.scheduler->catch_up();
  CHECK(events->back().job.state == v1::Job::RUNNING);
  REQUIRE(f.b.finish(f.b.lease(), "a"));
  f.a.scheduler->catch_up();
  REQUIRE(events->back().job.state == v1::Job::DONE);
  REQUIRE(events->back().record);
  CHECK(events->back().record->job_id == asked.job.id);
  CHECK(f.a.scheduler->open_jobs().empty());
}

TEST_CASE("a daemon that starts knows the open jobs and none that has ended") {
  TwoDaemons f;
  f.a.join();
  f.a.submit(4096);
  f.a.submit(1024);
  REQUIRE(f.a.store_batch(f.a.lease(), "a"));
  REQUIRE(f.a.finish(f.a.lease(), "a"));
  Member c(f.url);
  c.begin();
  REQUIRE(c.scheduler->open_jobs().size() == 1);
  CHECK(c.scheduler->open_jobs().at(0).job.question.problem == problem_of(1024));
}

TEST_CASE("a job that no living daemon has a GPU for is no_device") {
  TwoDaemons f;
  CHECK(f.a.submit().job.state == v1::Job::NO_DEVICE);
  CHECK(f.b.submit().job.state == v1::Job::NO_DEVICE);
}

TEST_CASE("another daemon's job waits for one that knows its kernel while this one is alone") {
  const std::string url = postgres_server().create_database();
  {
    Member other(url);
    other.begin();
    RecordQuestion question = question_of(4096);
    question.kernel = "of_the_other";
    other.submit_tune(question, h200_class(), false);
  }
  Member alone(url);
  alone.begin();
  REQUIRE(alone.scheduler->open_jobs().size() == 1);
  REQUIRE(eventually([&] { return alone.store->peers()->alive().empty(); }));
  alone.clock.advance(5s);
  alone.scheduler->tick();
  CHECK(alone.scheduler->open_jobs().size() == 1);
}

TEST_CASE("what comes with the fence of a lease that another daemon has taken is not stored") {
  TwoDaemons f;
  f.a.join();
  const std::string job = f.a.submit().job.id;
  const Lease stale = f.a.lease();
  f.b.join();
  f.execute("UPDATE jobs SET owner = NULL");
  f.b.scheduler->catch_up();
  REQUIRE(f.b.lease().fence == stale.fence + 1);
  CHECK_FALSE(f.a.store_batch(stale, "a"));
  CHECK(f.a.link.ended == std::vector<std::string>{stale.id});
  CHECK(f.number("SELECT count(*) FROM trials") == 0);
  REQUIRE(f.b.store_batch(f.b.lease(), "a"));
  const auto events = f.a.watch(job);
  f.a.scheduler->catch_up();
  REQUIRE(f.b.finish(f.b.lease(), "a"));
  f.a.scheduler->catch_up();
  CHECK(events->back().job.state == v1::Job::DONE);
  CHECK(f.number("SELECT count(*) FROM records") == 1);
}

TEST_CASE("an end with a stale fence ends nothing and stores no record") {
  TwoDaemons f;
  f.a.join();
  f.a.submit();
  const Lease stale = f.a.lease();
  REQUIRE(f.a.store_batch(stale, "a"));
  f.b.join();
  f.execute("UPDATE jobs SET owner = NULL");
  f.b.scheduler->catch_up();
  CHECK_FALSE(f.a.finish(stale, "a"));
  CHECK_FALSE(f.a.scheduler->finish(f.a.agent, stale.id, stale.fence, SchedulerFixture::failed()));
  CHECK(f.number("SELECT count(*) FROM records") == 0);
  CHECK(f.number("SELECT count(*) FROM jobs WHERE ended = 0 AND fence = 2") == 1);
}

TEST_CASE("a retune that one daemon is asked for takes the lease of another") {
  TwoDaemons f;
  f.a.join();
  f.a.submit();
  const Lease before = f.a.lease();
  const JobEvent again = f.b.submit_tune(f.b.question(4096), h200_class(), true);
  CHECK(again.job.id == before.job.id);
  CHECK_FALSE(f.a.store_batch(before, "a"));
  f.a.scheduler->catch_up();
  REQUIRE(f.a.link.leases.size() == 2);
  CHECK(f.a.lease().fence == before.fence + 2);
  CHECK(f.a.lease().job.fact.retune());
}

TEST_CASE("a job that one daemon is asked to cancel ends at the daemon that has leased it") {
  TwoDaemons f;
  f.a.join();
  const std::string job = f.a.submit().job.id;
  const auto events = f.a.watch(job);
  CHECK(f.b.scheduler->cancel(job).job.state == v1::Job::CANCELLED);
  f.a.scheduler->catch_up();
  CHECK(events->back().job.state == v1::Job::CANCELLED);
  CHECK(f.a.link.ended.size() == 1);
  CHECK_FALSE(f.a.store_batch(f.a.lease(), "a"));
}

TEST_CASE("a job that an agent hands back is leased by another daemon") {
  TwoDaemons f;
  f.a.join();
  f.a.submit();
  f.b.join();
  CHECK(f.b.link.leases.empty());
  f.a.scheduler->agent_left(f.a.agent);
  f.b.scheduler->catch_up();
  REQUIRE(f.b.link.leases.size() == 1);
  CHECK(f.b.lease().fence == 2);
}

TEST_CASE("the jobs of a daemon that has gone are leased by another after some seconds") {
  auto f = std::make_unique<TwoDaemons>();
  f->a.join();
  f->a.submit();
  f->b.join();
  f->b.scheduler->catch_up();
  CHECK(f->b.link.leases.empty());
  f->a.scheduler.reset();
  f->a.store.reset();
  CHECK(eventually([&] {
    f->b.scheduler->catch_up();
    return f->b.link.leases.size() == 1;
  }));
}

TEST_CASE("a daemon that others do not hear keeps its job until its time by the database is over") {
  TwoDaemons f;
  f.a.join();
  f.a.submit();
  f.b.join();
  // As if b had not read that a is alive.
  f.b.scheduler->catch_up();
  f.execute("UPDATE daemons SET alive_until = clock_timestamp() + interval '1 hour'");
  CHECK_THROWS_WITH(f.b.store->write([&](StoreWriter& writer) {
    const SharedJob job = writer.jobs_since(0, true).at(0);
    writer.claim_job(job.job.id, job.change, f.b.store->peers()->self());
  }),
                    Catch::Matchers::Contains("another daemon has changed it"));
}

TEST_CASE("a job whose end was not stored is open again when the database is back") {
  TwoDaemons f;
  f.a.join();
  const std::string job = f.a.submit().job.id;
  postgres_server().stop();
  f.a.scheduler->finish(f.a.agent, f.a.lease().id, f.a.lease().fence, SchedulerFixture::failed());
  CHECK(f.a.scheduler->open_jobs().empty());
  postgres_server().start();
  CHECK(eventually([&] {
    try {
      f.a.scheduler->catch_up();
      f.a.store->try_recover();
    } catch (const Error&) {
      return false;
    }
    return !f.a.scheduler->open_jobs().empty() && f.a.scheduler->open_jobs().at(0).job.id == job;
  }));
}

}  // namespace
}  // namespace cubind::test
