// What the store keeps of jobs that a GPU had no memory for.
#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "server/store/database.hpp"
#include "server/store/migration.hpp"
#include "server/store/sql.hpp"
#include "server/store/store.hpp"
#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

JobRow failed_job(const std::string& id, std::uint64_t needs_bytes) {
  JobRow job;
  job.id = id;
  job.key = Digest::of("key");
  job.question = question_of(4096);
  job.state = JobState::Failed;
  job.error = "out of device memory";
  job.for_bucket = true;
  job.needs_bytes = needs_bytes;
  return job;
}

void put(Store& store, const JobRow& job) {
  store.write([&](StoreWriter& writer) { writer.put_job(job); });
}

std::vector<JobRow> out_of_memory(Store& store) {
  std::vector<JobRow> jobs;
  store.read([&](StoreReader& reader) { jobs = reader.out_of_memory_jobs(); });
  return jobs;
}

TEST_CASE("a job is found by its id and is open or has ended") {
  const TempDir folder;
  const auto store = Store::open({folder.path() / "store.db"});
  JobRow open = failed_job("b", 0);
  open.key = job_key(open.question);
  open.state = JobState::Queued;
  put(*store, open);
  put(*store, failed_job("a", 0));
  store->read([](StoreReader& reader) {
    CHECK(reader.job("a").value().state == JobState::Failed);
    CHECK_FALSE(reader.job("c"));
    REQUIRE(reader.open_jobs().size() == 1);
    CHECK(reader.open_jobs()[0].id == "b");
    REQUIRE(reader.ended_jobs().size() == 1);
    CHECK(reader.ended_jobs()[0].id == "a");
  });
}

TEST_CASE("a job that failed for the lack of memory is kept with what it needs") {
  const TempDir folder;
  put(*Store::open({folder.path() / "store.db"}), failed_job("a", 77));
  const auto jobs = out_of_memory(*Store::open({folder.path() / "store.db"}));
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].needs_bytes == 77);
  CHECK(jobs[0].for_bucket);
}

TEST_CASE("of the jobs with one key the latest alone tells of the lack of memory") {
  const TempDir folder;
  const auto store = Store::open({folder.path() / "store.db"});
  put(*store, failed_job("b", 77));
  put(*store, failed_job("a", 88));
  REQUIRE(out_of_memory(*store).size() == 1);
  CHECK(out_of_memory(*store)[0].id == "a");
  put(*store, failed_job("c", 0));
  CHECK(out_of_memory(*store).empty());
}

TEST_CASE("a damaged job that had no memory is forgotten and the others are reported") {
  const TempDir folder;
  const auto path = folder.path() / "store.db";
  JobRow other = failed_job("b", 88);
  other.key = Digest::of("other key");
  put(*Store::open({path}), failed_job("a", 77));
  put(*Store::open({path}), other);
  store::Database(path, store::Database::Mode::Create)
      .execute("UPDATE jobs SET problem = '{' WHERE id = 'a'");
  const auto jobs = out_of_memory(*Store::open({path}));
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].id == "b");
}

JobRow ended_job(const std::string& id, const std::string& day) {
  JobRow job = failed_job(id, 0);
  job.key = Digest::of(id);
  job.created_at = job.finished_at = day;
  return job;
}

std::vector<std::string> ids_of(const std::vector<JobRow>& jobs) {
  std::vector<std::string> ids;
  for (const JobRow& job : jobs) {
    ids.push_back(job.id);
  }
  return ids;
}

std::vector<std::string> ids(Store& store) {
  std::vector<std::string> found;
  store.read([&](StoreReader& reader) { found = ids_of(reader.jobs_after({}, 100'000).jobs); });
  return found;
}

TEST_CASE("pages of jobs hold every job once in the order of their age") {
  const TempDir folder;
  const auto store = Store::open({folder.path() / "store.db"});
  for (const char* id : {"d", "b", "c"}) {
    put(*store, ended_job(id, "2026-01-02"));
  }
  put(*store, ended_job("z", "2026-01-01"));
  store->read([](StoreReader& reader) {
    const JobPage first = reader.jobs_after({}, 2);
    CHECK(ids_of(first.jobs) == std::vector<std::string>{"z", "b"});
    const JobPage second = reader.jobs_after(first.last.value(), 2);
    CHECK(ids_of(second.jobs) == std::vector<std::string>{"c", "d"});
    CHECK_FALSE(reader.jobs_after(second.last.value(), 2).last);
  });
}

TEST_CASE("a page of damaged jobs is empty and leads on to the next") {
  const TempDir folder;
  const auto path = folder.path() / "store.db";
  put(*Store::open({path}), ended_job("a", "2026-01-01"));
  put(*Store::open({path}), ended_job("b", "2026-01-02"));
  store::Database(path, store::Database::Mode::Create)
      .execute("UPDATE jobs SET problem = '{' WHERE id = 'a'");
  Store::open({path})->read([](StoreReader& reader) {
    const JobPage first = reader.jobs_after({}, 1);
    CHECK(first.jobs.empty());
    CHECK(ids_of(reader.jobs_after(first.last.value(), 1).jobs) == std::vector<std::string>{"b"});
  });
}

TEST_CASE("ended jobs are forgotten by age but for those whose record holds") {
  const TempDir folder;
  const auto store = Store::open({folder.path() / "store.db"});
  put(*store, ended_job("old", "2026-01-01"));
  put(*store, ended_job("kept", "2026-01-01"));
  put(*store, ended_job("young", "2026-01-03"));
  JobRow open = ended_job("open", "2026-01-01");
  open.key = job_key(open.question);
  open.state = JobState::Queued;
  put(*store, open);
  store->write([](StoreWriter& writer) {
    RecordRow record = record_row(4096);
    record.job_id = "kept";
    writer.put_device_class(h200_class());
    writer.put_record(record);
    writer.forget_jobs("2026-01-02");
  });
  CHECK(ids(*store) == std::vector<std::string>{"kept", "open", "young"});
}

TEST_CASE("of the ended jobs the last ten thousand stay") {
  const TempDir folder;
  const auto path = folder.path() / "store.db";
  put(*Store::open({path}), ended_job("job100000", "100000"));
  copy_rows(path, "jobs", kMaxEndedJobs + 1, "id = 'job' || (100000 + rowid), finished_at = 100000 + rowid");
  Store::open({path})->write([](StoreWriter& writer) { writer.forget_jobs(""); });
  CHECK(count_rows(path, "jobs") == kMaxEndedJobs);
  CHECK(count_rows(path, "jobs WHERE id < 'job100002'") == 0);
}

TEST_CASE("the series of a question is known when its jobs are forgotten") {
  const TempDir folder;
  const auto store = Store::open({folder.path() / "store.db"});
  TrialRow trial = trial_row("t");
  trial.series = 3;
  JobRow job = ended_job("a", "2026-01-01");
  job.series = 2;
  store->write([&](StoreWriter& writer) { writer.put_trial(trial); });
  put(*store, job);
  const auto last = [&] {
    std::uint32_t series = 0;
    store->read([&](StoreReader& reader) { series = reader.last_series(question_of(4096)); });
    return series;
  };
  CHECK(last() == 3);
  job.series = 4;
  put(*store, job);
  CHECK(last() == 4);
  store->write([](StoreWriter& writer) { writer.forget_jobs("2026-01-02"); });
  CHECK(last() == 3);
}

TEST_CASE("no question about some jobs reads all of them") {
  const TempDir folder;
  const auto path = folder.path() / "store.db";
  Store::open({path});
  for (const std::string& sql : {store::sql::kJob, store::sql::kLastSeries, store::sql::kJobsAfter,
                                 store::sql::kJobAgesAfter, store::sql::kTrialsOfGroup}) {
    store::Database database(path, store::Database::Mode::ReadOnly);
    const std::string explained = "EXPLAIN QUERY PLAN " + sql;
    store::Statement plan = database.query(explained);
    while (plan.step()) {
      plan.integer(), plan.integer(), plan.integer();
      const std::string step = plan.text();
      CAPTURE(sql, step);
      CHECK((!step.starts_with("SCAN") || step == "SCAN CONSTANT ROW"));
    }
  }
}

TEST_CASE("a store of schema version 1 keeps its jobs and lacked no memory") {
  const TempDir folder;
  const auto path = folder.path() / "store.db";
  {
    store::Database database(path, store::Database::Mode::Create);
    store::migrate(database, store::schema_steps().first(1), path.string());
    database.execute(R"(INSERT INTO meta VALUES (1, zeroblob(16), 0, '', '');
        INSERT INTO jobs VALUES ('a', 'tune', zeroblob(32), 'vector_add', zeroblob(32),
            '{"dims":{"N":4096},"types":{"T":"f32"},"flags":{},"scenario":""}', zeroblob(32), 'cold/3,stream',
            'tolerance', '', 'failed', 1, 0, 0, 0, 0, 'out of device memory', '', '', '', 0, 0, 0, 0, '{}',
            zeroblob(32), '[]', '', 0, ''))");
  }
  const auto store = Store::open({path});
  CHECK(out_of_memory(*store).empty());
  store->read([](StoreReader& reader) {
    REQUIRE(reader.ended_jobs().size() == 1);
    CHECK(reader.ended_jobs()[0].error == "out of device memory");
  });
}

}  // namespace
}  // namespace cubind::test
