// What the daemon does when its disk is full or its file is damaged.
#include <catch2/catch.hpp>

#include <sqlite3.h>

#include <stdexcept>

#include "base/error.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

// The daemon's file, opened while it runs.
class OpenStore {
 public:
  explicit OpenStore(const std::filesystem::path& path) {
    check(sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READWRITE, nullptr));
    sqlite3_busy_timeout(database_, 10'000);
  }
  ~OpenStore() { sqlite3_close(database_); }
  OpenStore(const OpenStore&) = delete;
  OpenStore& operator=(const OpenStore&) = delete;

  void execute(const std::string& sql) {
    check(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr));
  }
  std::int64_t number(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr));
    const bool found = sqlite3_step(statement) == SQLITE_ROW;
    const std::int64_t value = found ? sqlite3_column_int64(statement, 0) : -1;
    sqlite3_finalize(statement);
    if (!found) {
      throw std::runtime_error(sql + ": no row");
    }
    return value;
  }

 private:
  void check(int code) {
    if (code != SQLITE_OK) {
      throw std::runtime_error(sqlite3_errmsg(database_));
    }
  }
  sqlite3* database_ = nullptr;
};

bool is_read_only(const Connection& connection) { return connection.get_status(kPatience).read_only(); }

// Asks for tuning; false where the daemon has no room for the job.
bool try_tune(const Connection& connection, const Problem& problem) {
  v1::TuneRequest request = tune_request({problem});
  request.set_detach(true);
  try {
    connection.tune(
        request, [](const v1::TuneEvent&) {}, {}, kPatience);
    return true;
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::ResourceExhausted);
    return false;
  }
}

TEST_CASE("a full disk makes the service read-only with the reason and it recovers by itself") {
  TinyDaemon daemon({.problems = {tiny_problem(2), tiny_problem(3)}});
  v1::GetVariantReply known;
  {
    const Connection connection = daemon->connect();
    tune(connection, {tiny_problem(2)});
    known = connection.get_variant(question(connection, tiny_problem(2)), kPatience);
  }
  REQUIRE(daemon->stop().has_value());
  {
    OpenStore store(daemon->store());
    store.execute("CREATE TABLE ballast_of_the_test (bytes BLOB)");
    store.execute("INSERT INTO ballast_of_the_test VALUES (zeroblob(4000000))");
    const std::int64_t bytes = store.number("PRAGMA page_count") * store.number("PRAGMA page_size");
    daemon->options().arguments = {"--db-max-bytes", std::to_string(bytes)};
  }
  daemon->start();
  const Connection connection = daemon->connect();
  CHECK(eventually([&] {
    try_tune(connection, tiny_problem(3));
    return is_read_only(connection);
  }));
  CHECK_FALSE(connection.get_status(kPatience).read_only_reason().empty());
  // What is stored is served all the while.
  CHECK(connection.get_variant(question(connection, tiny_problem(2)), kPatience).SerializeAsString() ==
        known.SerializeAsString());

  OpenStore(daemon->store()).execute("DELETE FROM ballast_of_the_test");
  CHECK(eventually([&] { return !is_read_only(connection); }, std::chrono::seconds(10)));
  REQUIRE(tune(connection, {tiny_problem(3)}).at(0).job().state() == v1::Job::DONE);
}

}  // namespace
}  // namespace cubind::test
