// A store in a temporary folder.
#pragma once

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "server/store/connection.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/unit/server/rows.hpp"
#include "tests/unit/server/test_database.hpp"

namespace cubind::test {

struct StoreFixture {
  std::unique_ptr<TestDatabase> database = TestDatabase::make();
  const TempDir& folder = database->folder;
  const std::filesystem::path& path = database->path;
  std::unique_ptr<Store> store = database->open();

  void reopen() {
    store.reset();
    store = database->open();
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
    database->connect()->execute(sql);
    store = database->open();
  }
  /// Behind the store's back: `count` copies of the table's only row, changed as `changes` says, where
  /// `number` counts them from 1.
  void copy_rows(const std::string& table, std::uint32_t count, const store::DialectText& changes) {
    const store::DialectText numbers{
        "(WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers LIMIT " +
            std::to_string(count) + ") SELECT number FROM numbers)",
        "generate_series(1, " + std::to_string(count) + ") AS series(number)"};
    store.reset();
    const auto connection = database->connect();
    const store::Dialect dialect = connection->dialect();
    connection->execute("CREATE TEMP TABLE copies AS SELECT * FROM " + table + ", " + numbers.in(dialect));
    connection->execute("UPDATE copies SET " + changes.in(dialect));
    connection->execute("ALTER TABLE copies DROP COLUMN number");
    connection->execute("INSERT INTO " + table + " SELECT * FROM copies");
    store = database->open();
  }
  /// `from`: a table, with a condition or none.
  std::uint64_t count_rows(const std::string& from) {
    const auto connection = database->connect();
    store::Statement query = connection->query("SELECT count(*) FROM " + from);
    REQUIRE(query.step());
    return query.unsigned_integer();
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

}  // namespace cubind::test
