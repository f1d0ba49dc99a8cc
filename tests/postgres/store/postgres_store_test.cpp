// A store in PostgreSQL: who has it open, and what a lost connection leaves.
#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "base/process_host.hpp"
#include "base/unique_fd.hpp"
#include "server/store/peers.hpp"
#include "server/store/postgresql/postgres_connection.hpp"
#include "server/store/sql.hpp"
#include "tests/postgres/store/postgres_test_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/shortest_of.hpp"
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
    return eventually([&] { return number(sql) != 0; });
  }
};

/// A TCP port of this machine whose queue of connections is full: the kernel drops every further SYN.
class DroppingPort {
 public:
  DroppingPort() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address_);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    REQUIRE(::bind(listener_.get(), address, length) == 0);
    REQUIRE(::listen(listener_.get(), 0) == 0);
    REQUIRE(::getsockname(listener_.get(), address, &length) == 0);
    for (const UniqueFd& queued : queued_) {
      static_cast<void>(::connect(queued.get(), address, length));
    }
  }
  int port() const { return ntohs(address_.sin_port); }

 private:
  static UniqueFd tcp() { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

  sockaddr_in address_{};
  UniqueFd listener_ = tcp();
  std::array<UniqueFd, 3> queued_{tcp(), tcp(), tcp()};
};

TEST_CASE("daemons that have the same database open know each other by name") {
  PostgresStore f;
  auto second = PostgresStore::open(f.url);
  const auto names = [&] {
    std::vector<std::string> found;
    for (const Peer& peer : f.store->peers()->alive()) {
      found.push_back(peer.name);
    }
    return found;
  };
  const std::vector<std::string> expected{"cubind pid " + std::to_string(::getpid()) + " on " + host_name() +
                                          " at unix:///run/first.sock"};
  CHECK(eventually([&] { return names() == expected; }));
  CHECK_FALSE(f.store->peers()->is_gone(second->peers()->self()));
  second.reset();
  CHECK(eventually([&] { return names().empty(); }));
}

TEST_CASE("a database of an older or a newer build is refused with what to do and stays as it was") {
  const std::string version = GENERATE("4", "14");
  PostgresStore f;
  f.store.reset();
  f.execute("DROP TABLE pins; UPDATE cubind_schema SET version = " + version);
  CHECK_THROWS_WITH(PostgresStore::open(f.url),
                    "store: has schema version " + version +
                        ", and this cubind uses version 13: export its records with the build that wrote it "
                        "(cubindctl export), start this one with a new database (--store), and import them "
                        "there (cubindctl import)");
  CHECK(f.number("SELECT count(*) FROM pg_tables WHERE tablename = 'pins'") == 0);
}

TEST_CASE("a daemon whose database was replaced by that of another build does not write there") {
  PostgresStore f;
  f.execute("UPDATE cubind_schema SET version = 14");
  f.execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
      "pg_backend_pid()");
  CHECK_THROWS_AS(f.raise(), Error);  // on the lost connection
  CHECK_THROWS_WITH(f.raise(), Contains("has schema version 14"));
}

TEST_CASE("daemons that start at the same time on a new database all get it") {
  const std::string url = postgres_server().create_database();
  std::vector<std::future<std::unique_ptr<Store>>> stores;
  for (int i = 0; i < 4; ++i) {
    stores.push_back(std::async(std::launch::async, [&] { return PostgresStore::open(url); }));
  }
  for (auto& store : stores) {
    CHECK_NOTHROW(store.get());
  }
}

TEST_CASE("writes of several daemons are done one after the other and none is lost") {
  PostgresStore f;
  auto second = PostgresStore::open(f.url);
  constexpr int kWrites = 100;
  const auto write = [](Store& store) {
    for (int i = 0; i < kWrites; ++i) {
      store.write([](StoreWriter& writer) { writer.next_generation(); });
    }
  };
  auto other = std::async(std::launch::async, [&] { write(*second); });
  write(*f.store);
  other.get();
  CHECK(f.generation().number == 2 * kWrites);
}

TEST_CASE("of daemons that store a new record of one question at the same time one does") {
  PostgresStore f;
  f.store->write([](StoreWriter& writer) { writer.put_device_class(h200_class()); });
  auto second = PostgresStore::open(f.url);
  constexpr int kQuestions = 50;
  const auto write = [](Store& store, double median_us) {
    int stored = 0;
    for (int i = 0; i < kQuestions; ++i) {
      store.write(
          [&](StoreWriter& writer) { stored += writer.put_new_record(record_row(i, median_us)) ? 1 : 0; });
    }
    return stored;
  };
  auto other = std::async(std::launch::async, [&] { return write(*second, 10); });
  const int own = write(*f.store, 20);
  CHECK(own + other.get() == kQuestions);
}

TEST_CASE(
    "a writer that stands still within a transaction stops the others for some seconds and has failed") {
  PostgresStore f;
  auto second = PostgresStore::open(f.url);
  std::promise<void> holds, goes_on;
  auto still = std::async(std::launch::async, [&] {
    second->write([&](StoreWriter& writer) {
      writer.next_generation();
      holds.set_value();
      goes_on.get_future().wait();
    });
  });
  holds.get_future().wait();
  f.raise();
  CHECK(f.generation().number == 1);
  goes_on.set_value();
  CHECK(code_of([&] { still.get(); }) == ErrorCode::Unavailable);
  CHECK(f.generation().number == 1);
}

TEST_CASE("a database of another application or encoding is refused and stays as it is") {
  PostgresStore f;
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

TEST_CASE("a database that was restored under a running daemon gets a new id with its next write") {
  PostgresStore f;
  f.raise();
  const Generation first = f.generation();
  f.execute("CREATE TABLE copied AS SELECT * FROM meta; DROP TABLE meta; ALTER TABLE copied RENAME TO meta");
  f.server.stop();
  f.server.start();
  f.raise();
  CHECK(f.generation().number == 2);
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
  CHECK(eventually([&] { return f.store->try_recover(); }));
  CHECK_FALSE(f.store->read_only_reason());
  f.raise();
  CHECK(f.generation().number == 2);
}

TEST_CASE("of the calls to a server whose network drops everything the first alone waits") {
  PostgresStore f;
  const DroppingPort dropping;
  f.url += ",127.0.0.1&port=," + std::to_string(dropping.port());  // asked when the server's socket has gone
  f.reopen();
  f.server.stop();
  CHECK(code_of([&] { f.generation(); }) == ErrorCode::Unavailable);
  const auto shortest = shortest_of(10, [&] {
    CHECK(code_of([&] { f.generation(); }) == ErrorCode::Unavailable);
    CHECK(code_of([&] { f.raise(); }) == ErrorCode::Unavailable);
  });
  CHECK(shortest < std::chrono::seconds(3));  // what each would wait
  f.server.start();
  CHECK(eventually([&] { return f.store->try_recover(); }));
}

TEST_CASE("more readers than there are connections all learn that the server is away") {
  PostgresStore f;
  const DroppingPort dropping;
  f.url += ",127.0.0.1&port=," + std::to_string(dropping.port());
  f.reopen();
  f.server.stop();
  std::vector<std::future<ErrorCode>> readers;
  for (int i = 0; i < 12; ++i) {
    readers.push_back(std::async(std::launch::async, [&] { return code_of([&] { f.generation(); }); }));
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (auto& reader : readers) {
    CHECK(reader.wait_until(until) == std::future_status::ready);
  }
  f.server.start();  // those that still wait end too
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

TEST_CASE("a daemon whose sessions were ended goes on and knows that it may have missed something") {
  PostgresStore f;
  f.raise();
  const std::uint64_t before = f.store->peers()->interruptions();
  f.execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
      "pg_backend_pid()");
  CHECK(eventually([&] { return f.store->peers()->interruptions() > before; }));  // none is left by then
  f.raise();
  CHECK(f.generation().number == 2);
}

TEST_CASE("a daemon that was cut off takes no other one for gone before that could come back") {
  PostgresStore f;
  auto second = PostgresStore::open(f.url);
  f.server.stop();
  f.server.start();
  const std::string unknown(16, 'x');
  CHECK(eventually([&] { return f.store->peers()->interruptions() > 1; }));
  CHECK_FALSE(f.store->peers()->is_gone(unknown));
  CHECK(eventually([&] { return f.store->peers()->is_gone(unknown); }));
  CHECK_FALSE(f.store->peers()->is_gone(second->peers()->self()));
}

TEST_CASE("a free text with a NUL byte is read as it was written") {
  StoreFixture f;
  TrialRow trial = trial_row("a");
  trial.header().set_detail(std::string("before\0after", 12));
  f.write([&](StoreWriter& writer) { writer.put_trial(trial); });
  CHECK(f.read([&](StoreReader& reader) { return reader.trial(trial.key.digest, trial.kernel); }) == trial);
}

TEST_CASE("every statement of the store is one that PostgreSQL prepares") {
  StoreFixture f;
  const auto connection = f.database->connect();
  for (const std::string& sql :
       {store::sql::kTrimWants,      store::sql::kLastSeries,       store::sql::kForgetJobs,
        store::sql::kUnneededCubins, store::sql::kCurrentOfGroup,   store::sql::kOutOfMemoryOfKey,
        store::sql::kCurrentRecord,  store::sql::kSetFact,          store::sql::kCounts.postgresql,
        store::sql::kToolchains,     store::sql::kMendDeviceClass,  store::sql::kRecordsAt,
        store::sql::kJobsSince,      store::sql::kLastJobChange,    store::sql::kOpenJobOfKey,
        store::sql::kRecordsSince,   store::sql::kLastRecordChange, store::sql::kClaimJob,
        store::sql::kUnchangedJob,   store::sql::kFencedJob,        store::sql::kSetOwner}) {
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
