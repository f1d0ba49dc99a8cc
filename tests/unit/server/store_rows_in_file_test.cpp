// Rows in SQLite's file: their sums, the plans of queries, rows of earlier schemas.
#include <catch2/catch.hpp>

#include "server/store/sql.hpp"
#include "server/store/sqlite/database.hpp"
#include "server/store/sqlite/migration.hpp"
#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

struct TrialOfRecord : RecordStore {
  TrialOfRecord() {
    put(record_row(4096));
    write([&](StoreWriter& writer) { writer.put_trial(crashed); });
  }
  TrialRow crashed = trial_row("crashed");
};

TEST_CASE_METHOD(TrialOfRecord, "a damaged record stays damaged when a fault of its problem is forgotten") {
  put(record_row(8192));
  damage("UPDATE records SET median_us = 1");
  write([&](StoreWriter& writer) { writer.forget_trial(crashed); });
  CHECK(records().empty());
}

TEST_CASE_METHOD(TrialOfRecord, "a record whose search is no longer done tells a later damage") {
  write([&](StoreWriter& writer) { writer.forget_trial(crashed); });
  CHECK(records().size() == 1);
  damage("UPDATE records SET median_us = 1");
  CHECK(records().empty());
}

TEST_CASE("no question about some jobs reads all of them") {
  const TempDir folder;
  const auto path = folder.path() / "store.db";
  Store::open({path});
  for (const std::string& sql :
       {store::sql::kJob.sqlite, store::sql::kLastSeries, store::sql::kJobsAfter.sqlite,
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
  store->read([](StoreReader& reader) {
    CHECK(reader.out_of_memory_jobs().empty());
    REQUIRE(reader.ended_jobs().size() == 1);
    CHECK(reader.ended_jobs()[0].error == "out of device memory");
  });
}

}  // namespace
}  // namespace cubind::test
