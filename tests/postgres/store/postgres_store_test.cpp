// A store in PostgreSQL: who may open it, and what a lost connection leaves.
#include <catch2/catch.hpp>

#include <atomic>
#include <future>
#include <thread>

#include "server/store/postgresql/postgres_connection.hpp"
#include "server/store/sql.hpp"
#include "tests/postgres/store/postgres_test_database.hpp"
#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

struct PostgresStore {
  PostgresServer& server = postgres_server();
  std::string url = server.create_database();
  std::unique_ptr<Store> store = open(url);

  static std::unique_ptr<Store> open(const std::string& url) {
    StoreOptions options;
    options.url = url;
    options.address = "unix:///run/first.sock";
    return Store::open(options);
  }
  void reopen() {
    store.reset();
    store = open(url);
  }
  void execute(const std::string& sql) { store::PostgresConnection(url, "test").execute(sql); }
  std::int64_t number(const std::string& sql) {
    store::PostgresConnection connection(url, "test");
    store::Statement query = connection.query(sql);
    return query.step() ? query.integer() : 0;
  }
  Generation generation() {
    Generation found;
    store->read([&](StoreReader& reader) { found = reader.generation(); });
    return found;
  }
  void raise() {
    store->write([](StoreWriter& writer) { writer.next_generation(); });
  }
  /// Until the number is not 0; false: it stays so.
  bool wait_for(const std::string& sql) {
    for (int i = 0; i < 1000 && number(sql) == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return number(sql) != 0;
  }
};

TEST_CASE("a second daemon on the same database is refused by the name of the first one") {
  PostgresStore f;
  CHECK_THROWS_WITH(PostgresStore::open(f.url), Contains("another cubind") &&
                                                    Contains("pid " + std::to_string(::getpid())) &&
                                                    Contains("unix:///run/first.sock"));
  f.reopen();
  CHECK(f.generation().number == 0);
}

TEST_CASE(
    "a database of another application or encoding or of a newer cubind is refused and stays as it is") {
  PostgresStore f;
  f.store.reset();
  f.execute("UPDATE cubind_schema SET version = 99");
  CHECK_THROWS_WITH(PostgresStore::open(f.url), Contains("newer"));
  const std::string other = f.server.create_database();
  f.server.execute(other, "CREATE TABLE theirs (x BIGINT)");
  CHECK_THROWS_WITH(PostgresStore::open(other), Contains("another application"));
  CHECK_NOTHROW(f.server.execute(other, "SELECT * FROM theirs"));
  const std::string latin =
      f.server.create_database("ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0");
  CHECK_THROWS_WITH(PostgresStore::open(latin), Contains("LATIN1") && Contains("ENCODING 'UTF8'"));
}

TEST_CASE("a store id stays when the store is opened again and is redrawn when a dump is restored") {
  PostgresStore f;
  f.raise();
  const Generation first = f.generation();
  f.reopen();
  CHECK(f.generation() == first);
  // What a restore does to the tables: the same rows in new ones.
  f.store.reset();
  f.execute("CREATE TABLE copied AS SELECT * FROM meta; DROP TABLE meta; ALTER TABLE copied RENAME TO meta");
  f.store = PostgresStore::open(f.url);
  CHECK(f.generation().number == 1);
  CHECK(f.generation().store_id != first.store_id);
}

TEST_CASE("while the server is down reads and writes fail with the cause and afterwards both go on") {
  PostgresStore f;
  f.raise();
  f.server.stop();
  CHECK(code_of([&] { f.generation(); }) == ErrorCode::Unavailable);
  CHECK(code_of([&] { f.raise(); }) == ErrorCode::Unavailable);
  REQUIRE(f.store->read_only_reason());
  CHECK_THAT(*f.store->read_only_reason(), Contains("PostgreSQL: "));
  CHECK_FALSE(f.store->try_recover());
  f.server.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // between attempts
  CHECK(f.store->try_recover());
  CHECK_FALSE(f.store->read_only_reason());
  f.raise();
  CHECK(f.generation().number == 2);
}

TEST_CASE("a server that was restarted between two calls is not noticed") {
  PostgresStore f;
  f.raise();
  CHECK(f.generation().number == 1);
  GENERATE(true, false) ? f.server.stop() : f.server.kill();
  f.server.start();
  CHECK(f.generation().number == 1);
  f.raise();
  CHECK(f.generation().number == 2);
}

TEST_CASE("a write whose COMMIT got no answer is found in the database and has not failed") {
  PostgresStore f;
  f.execute("ALTER SYSTEM SET synchronous_standby_names = 'none_there'");
  f.execute("SELECT pg_reload_conf()");
  // Until one commits and waits for a standby that does not exist: then its session is ended.
  std::atomic<bool> is_enough{false};
  auto written = std::async(std::launch::async, [&] {
    std::uint64_t writes = 0;
    for (; !is_enough; ++writes) {
      f.raise();
    }
    return writes;
  });
  const bool waits = f.wait_for("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  is_enough = true;
  f.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  f.execute("ALTER SYSTEM RESET synchronous_standby_names");
  f.execute("SELECT pg_reload_conf()");
  const std::uint64_t writes = written.get();
  REQUIRE(waits);
  CHECK(f.generation().number == writes);
  f.raise();
  CHECK(f.generation().number == writes + 1);
}

TEST_CASE("a write whose session ended before its COMMIT was done has failed and nothing of it stays") {
  PostgresStore f;
  f.execute(
      "CREATE FUNCTION ends() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM "
      "pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); RETURN NULL; END $$; "
      "CREATE CONSTRAINT TRIGGER ends AFTER UPDATE ON commits DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
      "EXECUTE "
      "FUNCTION ends()");
  CHECK_THROWS_WITH(f.raise(), Contains("nothing was written"));
  f.execute("DROP TRIGGER ends ON commits");
  CHECK(f.generation().number == 0);
  f.raise();
  CHECK(f.generation().number == 1);
}

TEST_CASE("a daemon whose database another one has written to writes no more and says what to do") {
  PostgresStore f;
  f.raise();
  f.execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
      "pg_backend_pid()");
  auto other = PostgresStore::open(f.url);
  CHECK_THROWS_WITH(f.raise(), Contains("another cubind"));
  other.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  CHECK_THROWS_WITH(f.raise(), Contains("another daemon has written") && Contains("start this daemon again"));
  f.reopen();
  f.raise();
  CHECK(f.generation().number == 2);
}

TEST_CASE("a free text with a NUL byte is stored with a mark in its place") {
  StoreFixture f;
  TrialRow trial = trial_row("a");
  trial.detail = std::string("before\0after", 12);
  f.write([&](StoreWriter& writer) { writer.put_trial(trial); });
  CHECK(f.read([&](StoreReader& reader) { return reader.trial(trial.key); }).value().detail ==
        "before\xEF\xBF\xBD"
        "after");
}

TEST_CASE("every statement of the store is one that PostgreSQL prepares") {
  StoreFixture f;
  const auto connection = f.database->connect();
  for (const std::string& sql :
       {store::sql::kTrimWants, store::sql::kLastSeries, store::sql::kForgetJobs, store::sql::kUnneededCubins,
        store::sql::kReopenSearches.postgresql, store::sql::kSettleOutOfMemory.postgresql,
        store::sql::kFailJob.postgresql, store::sql::kCounts.postgresql, store::sql::kToolchains,
        store::sql::kMendDeviceClass, store::sql::kRecordsAt.postgresql}) {
    CAPTURE(sql);
    CHECK_NOTHROW(connection->query(sql));
  }
}

TEST_CASE("parameters are numbered as PostgreSQL wants them") {
  CHECK(store::numbered_parameters("a = ? AND b = ?") == "a = $1 AND b = $2");
  CHECK(store::numbered_parameters("a = ?1 OR b = ?1 AND c = ?2") == "a = $1 OR b = $1 AND c = $2");
}

}  // namespace
}  // namespace cubind::test
