// A store that moves between a file of SQLite and a database of PostgreSQL.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "server/store/postgresql/postgres_connection.hpp"
#include "server/store/sqlite/database.hpp"
#include "server/store/sqlite/store_check.hpp"
#include "server/store/store_copy.hpp"
#include "tests/postgres/store/postgres_test_database.hpp"
#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

/// More rows of each kind than are read at a time, with a history and texts that only SQLite can hold.
void fill(Store& store) {
  store.write([](StoreWriter& writer) {
    writer.put_device_class(h200_class());
    for (unsigned i = 0; i < 150; ++i) {
      const std::string name = "trial " + std::to_string(i);
      const Blob cubin = blob_of("cubin of " + name);
      writer.put_blob(cubin);
      writer.put_artifact(artifact_row(name, "cubin of " + name));
      TrialRow trial = trial_row(name);
      trial.header().set_detail(i % 2 == 0 ? std::string("log\0text", 8) : "");
      writer.put_trial(trial);
      writer.put_block(block_row(trial, i % 3));
      writer.put_block(block_row(trial, 3 + i % 3));
      VerificationRow verified;
      *verified.mutable_verification() = comparison_of(trial.problem);
      verified.mutable_verification()->set_trial_key(bytes_of(trial.key.digest));
      writer.put_verification(verified);
      writer.put_record(record_row(1 + i % 100, 20.0 + i));
      JobRow job;
      job.id = name;
      job.question = question_of(i);
      job.key = job_key(job.question);
      job.state = i % 2 == 0 ? v1::Job::QUEUED : v1::Job::DONE;
      writer.put_job(job);
    }
    writer.count_want(question_of(7), "2026-01-02T03:04:05.678Z");
    writer.pin_generation("rollout", 3);
    writer.add_savings({"", 4, 3, 200, 1000});
  });
}

std::unique_ptr<Store> open_file(const std::filesystem::path& path) { return Store::open({.path = path}); }
std::unique_ptr<Store> open_database(const std::string& url) { return Store::open({.path = {}, .url = url}); }

Generation generation_of(Store& store) {
  Generation found;
  store.read([&](StoreReader& reader) { found = reader.generation(); });
  return found;
}

struct TwoStores {
  TempDir folder;
  std::filesystem::path file = folder.path() / "store.db", back = folder.path() / "back.db";
  std::string url = postgres_server().create_database();

  TwoStores() { fill(*open_file(file)); }
};

TEST_CASE("a store that was copied to PostgreSQL and back is the same") {
  TwoStores f;
  const auto file = open_file(f.file);
  const StoreContent content = content_of(*file);
  for (const auto& [table, count] : content.rows) {
    INFO(table);
    CHECK(count > 0);
  }
  const auto database = open_database(f.url);
  CHECK(copy_store(*file, *database) == content);
  CHECK(content_of(*database) == content);
  auto back = open_file(f.back);
  CHECK(copy_store(*database, *back) == content);
  CHECK(content_of(*back) == content);
  CHECK(generation_of(*back).number == generation_of(*file).number);
  CHECK(generation_of(*back).store_id != generation_of(*file).store_id);
  back.reset();
  CHECK(check_store(f.back).damage.empty());
}

TEST_CASE("every table and column of a store is copied but those of one engine") {
  TwoStores f;
  open_database(f.url);
  store::PostgresConnection postgres(f.url, "test");
  store::Database sqlite(f.file, store::Database::Mode::ReadOnly);
  const auto list = [](store::Connection& connection, const std::string& sql) {
    std::vector<std::string> texts;
    store::Statement query = connection.query(sql);
    while (query.step()) {
      texts.push_back(query.text());
    }
    return texts;
  };
  CHECK(list(sqlite, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") ==
        std::vector<std::string>{"artifacts", "ballast", "blob_uses", "blobs", "blocks", "device_classes",
                                 "jobs", "meta", "pins", "records", "savings", "trials", "verifications",
                                 "wants"});
  CHECK(list(postgres,
             "SELECT CAST(tablename AS TEXT) COLLATE \"C\" AS t FROM pg_tables WHERE schemaname = 'public' "
             "ORDER BY t") == std::vector<std::string>{"artifacts", "blob_uses", "blobs", "blocks", "commits",
                                                       "cubind_schema", "daemons", "device_classes", "jobs",
                                                       "meta", "pins", "records", "savings", "trials",
                                                       "verifications", "wants"});
  for (const std::string& table : copied_tables()) {
    CHECK(copied_columns(sqlite, table) == copied_columns(postgres, table));
  }
}

TEST_CASE("a copied store takes new rows behind those that it has") {
  TwoStores f;
  const auto database = open_database(f.url);
  copy_store(*open_file(f.file), *database);
  const Generation before = generation_of(*database);
  database->write([](StoreWriter& writer) {
    CHECK(writer.put_trial(trial_row("another")));
    CHECK(writer.put_record(record_row(100'000)));
  });
  CHECK(generation_of(*database).number == before.number + 1);
}

TEST_CASE("a copy to a database that another daemon has open is refused and changes nothing") {
  TwoStores f;
  const auto other = open_database(f.url);
  const auto database = open_database(f.url);
  const StoreContent empty = content_of(*database);
  CHECK_THROWS_WITH(copy_store(*open_file(f.file), *database), Contains("is in use by cubind pid"));
  CHECK(content_of(*database) == empty);
}

TEST_CASE("a copy to a place that holds a row is refused and leaves it as it was") {
  TwoStores f;
  const auto target = GENERATE(true, false) ? open_file(f.back) : open_database(f.url);
  target->write([](StoreWriter& writer) { writer.put_device_class(h200_class()); });
  const StoreContent before = content_of(*target);
  CHECK_THROWS_WITH(copy_store(*open_file(f.file), *target), Contains("is not empty"));
  CHECK(content_of(*target) == before);
}

TEST_CASE("a damaged row is damaged in the copy too") {
  TwoStores f;
  store::Database(f.file, store::Database::Mode::Create)
      .execute("UPDATE records SET provisional = 1 WHERE id = 9");
  const auto database = open_database(f.url);
  copy_store(*open_file(f.file), *database);
  database->read([](StoreReader& reader) {
    RecordFilter all;
    all.current_only = false;
    for (const RecordRow& record : reader.records(all)) {
      CHECK(record.id != 9);
    }
  });
  CHECK(database->damaged_rows() == 1);
}

}  // namespace
}  // namespace cubind::test
