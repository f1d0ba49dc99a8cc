// A store in a temporary folder.
#pragma once

#include <catch2/catch.hpp>

#include <sqlite3.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "server/store/database.hpp"
#include "tests/unit/server/rows.hpp"

namespace cubind::test {

struct StoreFixture {
  TempDir folder;
  std::filesystem::path path = folder.path() / "store.db";
  std::unique_ptr<Store> store = Store::open({path});

  void reopen() {
    store.reset();
    store = Store::open({path});
  }
  void write(const std::function<void(StoreWriter&)>& body) { store->write(body); }
  template <typename Read>
  auto read(Read read) {
    std::invoke_result_t<Read, StoreReader&> result{};
    store->read([&](StoreReader& reader) { result = read(reader); });
    return result;
  }
  Generation generation() {
    return read([](StoreReader& reader) { return reader.generation(); });
  }
  std::vector<RecordRow> records() {
    return read([](StoreReader& reader) { return reader.records({}); });
  }
  /// Behind the store's back, as a flipped bit on the disk would.
  void damage(const std::string& sql) {
    store.reset();
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
    CHECK(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(database);
    store = Store::open({path});
  }
};

struct RecordStore : StoreFixture {
  RecordStore() {
    write([](StoreWriter& writer) { writer.put_device_class(h200_class()); });
  }
  bool put(const RecordRow& row) {
    bool stored = false;
    write([&](StoreWriter& writer) { stored = writer.put_record(row); });
    return stored;
  }
};

/// Behind the store's back: `count` copies of the table's only row, changed as `changes` says, where rowid
/// counts them from 1.
inline void copy_rows(const std::filesystem::path& path, const std::string& table, std::uint32_t count,
                      const std::string& changes) {
  store::Database database(path, store::Database::Mode::Create);
  database.execute(
      "CREATE TEMP TABLE copies AS WITH RECURSIVE numbers(n) AS "
      "(SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT " +
      std::to_string(count) + ") SELECT rows.* FROM " + table + " AS rows, numbers");
  database.execute("UPDATE copies SET " + changes);
  database.execute("INSERT INTO " + table + " SELECT * FROM copies");
}

/// `from`: a table, with a condition or none.
inline std::uint64_t count_rows(const std::filesystem::path& path, const std::string& from) {
  store::Database database(path, store::Database::Mode::ReadOnly);
  const std::string sql = "SELECT count(*) FROM " + from;
  store::Statement query = database.query(sql);
  REQUIRE(query.step());
  return query.unsigned_integer();
}

inline ErrorCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("nothing was thrown");
  return ErrorCode::Internal;
}

}  // namespace cubind::test
