// Rows in SQLite's file: their digests, the plans of queries.
#include <catch2/catch.hpp>

#include "server/store/sql.hpp"
#include "server/store/sqlite/database.hpp"
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
  damage("UPDATE records SET fact = key");
  write([&](StoreWriter& writer) { writer.forget_trial(crashed); });
  CHECK(records().empty());
}

TEST_CASE_METHOD(TrialOfRecord, "a record whose search is no longer done tells a later damage") {
  write([&](StoreWriter& writer) { writer.forget_trial(crashed); });
  CHECK(records().size() == 1);
  damage("UPDATE records SET fact = key");
  CHECK(records().empty());
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

}  // namespace
}  // namespace cubind::test
