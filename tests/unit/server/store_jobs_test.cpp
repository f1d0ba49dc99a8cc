// What the store keeps of jobs, and of those that a GPU had no memory for.
#include <catch2/catch.hpp>

#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

JobRow failed_job(const std::string& id, std::uint64_t needs_bytes) {
  JobRow job;
  job.id = id;
  job.key = Digest::of("key");
  job.question = question_of(4096);
  job.state = v1::Job::FAILED;
  job.shown().set_error("out of device memory");
  job.fact.set_for_bucket(true);
  job.fact.set_needs_bytes(needs_bytes);
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
  StoreFixture f;
  const auto& store = f.store;
  JobRow open = failed_job("b", 0);
  open.key = job_key(open.question);
  open.state = v1::Job::QUEUED;
  put(*store, open);
  put(*store, failed_job("a", 0));
  store->read([](StoreReader& reader) {
    CHECK(reader.job("a").value().state == v1::Job::FAILED);
    CHECK_FALSE(reader.job("c"));
    REQUIRE(reader.open_jobs().size() == 1);
    CHECK(reader.open_jobs()[0].id == "b");
    REQUIRE(reader.ended_jobs().size() == 1);
    CHECK(reader.ended_jobs()[0].id == "a");
  });
}

TEST_CASE("a job that failed for the lack of memory is kept with what it needs") {
  StoreFixture f;
  put(*f.store, failed_job("a", 77));
  f.reopen();
  const auto jobs = out_of_memory(*f.store);
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].fact.needs_bytes() == 77);
  CHECK(jobs[0].fact.for_bucket());
}

TEST_CASE("of the jobs with one key the latest alone tells of the lack of memory") {
  StoreFixture f;
  const auto& store = f.store;
  put(*store, failed_job("b", 77));
  put(*store, failed_job("a", 88));
  REQUIRE(out_of_memory(*store).size() == 1);
  CHECK(out_of_memory(*store)[0].id == "a");
  put(*store, failed_job("c", 0));
  CHECK(out_of_memory(*store).empty());
}

TEST_CASE("a damaged job that had no memory is forgotten and the others are reported") {
  StoreFixture f;
  JobRow other = failed_job("b", 88);
  other.key = Digest::of("other key");
  put(*f.store, failed_job("a", 77));
  put(*f.store, other);
  f.damage("UPDATE jobs SET problem = '{' WHERE id = 'a'");
  const auto jobs = out_of_memory(*f.store);
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].id == "b");
}

JobRow ended_job(const std::string& id, const std::string& day) {
  JobRow job = failed_job(id, 0);
  job.key = Digest::of(id);
  job.shown().set_created_at(day);
  job.shown().set_finished_at(day);
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
  StoreFixture f;
  const auto& store = f.store;
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
  StoreFixture f;
  put(*f.store, ended_job("a", "2026-01-01"));
  put(*f.store, ended_job("b", "2026-01-02"));
  f.damage("UPDATE jobs SET problem = '{' WHERE id = 'a'");
  f.store->read([](StoreReader& reader) {
    const JobPage first = reader.jobs_after({}, 1);
    CHECK(first.jobs.empty());
    CHECK(ids_of(reader.jobs_after(first.last.value(), 1).jobs) == std::vector<std::string>{"b"});
  });
}

TEST_CASE("ended jobs are forgotten by age but for those whose record holds") {
  StoreFixture f;
  const auto& store = f.store;
  put(*store, ended_job("old", "2026-01-01"));
  put(*store, ended_job("kept", "2026-01-01"));
  put(*store, ended_job("young", "2026-01-03"));
  JobRow open = ended_job("open", "2026-01-01");
  open.key = job_key(open.question);
  open.state = v1::Job::QUEUED;
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
  StoreFixture f;
  put(*f.store, ended_job("job100000", "100000"));
  const std::string changes = "id = 'job' || (100000 + number), finished_at = 100000 + number";
  f.copy_rows("jobs", kMaxEndedJobs + 1, {changes, changes});
  f.write([](StoreWriter& writer) { writer.forget_jobs(""); });
  CHECK(f.count_rows("jobs") == kMaxEndedJobs);
  CHECK(f.count_rows("jobs WHERE id < 'job100002'") == 0);
}

TEST_CASE("the series of a question is known when its jobs are forgotten") {
  StoreFixture f;
  const auto& store = f.store;
  TrialRow trial = trial_row("t");
  trial.series = 3;
  JobRow job = ended_job("a", "2026-01-01");
  job.fact.set_series(2);
  store->write([&](StoreWriter& writer) { writer.put_trial(trial); });
  put(*store, job);
  const auto last = [&] {
    std::uint32_t series = 0;
    store->read([&](StoreReader& reader) { series = reader.last_series(question_of(4096), {}); });
    return series;
  };
  CHECK(last() == 3);
  job.fact.set_series(4);
  put(*store, job);
  CHECK(last() == 4);
  store->write([](StoreWriter& writer) { writer.forget_jobs("2026-01-02"); });
  CHECK(last() == 3);
}

}  // namespace
}  // namespace cubind::test
