// What the store keeps of jobs that a GPU had no memory for.
#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "server/store/database.hpp"
#include "server/store/migration.hpp"
#include "server/store/store.hpp"
#include "tests/unit/server/rows.hpp"

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

TEST_CASE("a damaged job that had no memory is forgotten and the others are told") {
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

TEST_CASE("a store of schema version 1 keeps its jobs and lacked no memory") {
  const TempDir folder;
  const auto path = folder.path() / "store.db";
  {
    store::Database database(path, store::Database::Mode::Create);
    store::migrate(database, store::schema_steps().first(1), path.string());
    database.execute(R"(INSERT INTO meta VALUES (1, zeroblob(16), 0, '', '');
        INSERT INTO jobs VALUES ('a', 'tune', zeroblob(32), 'vector_add', zeroblob(32),
            '{"dims":{"N":4096},"types":{"T":"f32"},"flags":{},"scenario":""}', zeroblob(32), 'cold/1,stream',
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
