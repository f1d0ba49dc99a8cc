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

TEST_CASE("a store of schema version 8 keeps its trials with their samples and verifications") {
  const TempDir folder;
  const auto path = folder.path() / "store.db";
  TrialRow trial = trial_row("a");
  trial.artifact_key.reset();
  {
    store::Database database(path, store::Database::Mode::Create);
    store::migrate(database, store::schema_steps().first(8), path.string());
    const std::string toolchain = "'nvrtc 13.0', zeroblob(32), zeroblob(32), zeroblob(32)";
    database.execute("INSERT INTO meta VALUES (1, zeroblob(16), 0, '', '')");
    database
        .query(
            "INSERT INTO trials VALUES (7, ?, ?, 'worker', NULL, 'vector_add', "
            R"('{"dims":{"N":4096},"types":{"T":"f32"},"flags":{},"scenario":""}', '{"THREADS":64}', zeroblob(32), )"
            "'cold/3,stream', '580', 13000, '580.159.04', 'correct', '', 0, " +
            toolchain + ", NULL, '', '[]', 1, 'job', NULL, 't')")
        .bind(trial.key.digest, store::Statement::bytes(trial.key.full))
        .run();
    database.execute(
        "INSERT INTO blocks VALUES (7, 1, 1, 0, x'000000000000F03F', 0, 0, 0, 0, 0, 0, 0, 'cupti', 0.03, 0, "
        "'job', 't');"
        R"(INSERT INTO verifications VALUES (7, 1, zeroblob(32), '{"dims":{"N":4096},"types":{"T":"f32"},"flags":{},"scenario":""}',)"
        " 0, 'correct', 0, '', 0, 0, 1, '', '', 'job', 't')");
  }
  const auto store = Store::open({path});
  store->read([&](StoreReader& reader) {
    const auto kept = reader.trial(trial.key.digest, "vector_add");
    REQUIRE(kept);
    CHECK(kept->driver.version == "580.159.04");
    REQUIRE(reader.blocks(*kept).size() == 1);
    CHECK(reader.blocks(*kept)[0].block.samples_us == std::vector<double>{1});
    CHECK(reader.verifications(*kept).size() == 1);
  });
}

}  // namespace
}  // namespace cubind::test
