#include "server/store/sqlite/schema.hpp"

#include <vector>

#include "schemas/store.hpp"
#include "server/store/schema_version.hpp"

namespace cubind::store {
namespace {

constexpr std::int64_t kApplicationId = 0x63756264;  // "cubd"

const std::string kUserVersion = "SELECT user_version FROM pragma_user_version";
const std::string kApplication = "SELECT application_id FROM pragma_application_id";
const std::string kTables = "SELECT count(*) FROM sqlite_master";
const std::string kSchema =
    "SELECT name || ' ' || sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name";

std::int64_t number(Database& database, const std::string& sql) {
  Statement query = database.query(sql);
  query.step();
  return query.integer();
}

/// Name and text of everything, sorted.
std::vector<std::string> schema_of(Database& database) {
  std::vector<std::string> parts;
  Statement query = database.query(kSchema);
  while (query.step()) {
    parts.push_back(query.blob());
  }
  return parts;
}

std::vector<std::string> schema_of_a_store() {
  Database database(":memory:", Database::Mode::Create);
  database.execute(std::string(kStoreSchema));
  return schema_of(database);
}

bool is_new(Database& database) {
  return number(database, kUserVersion) == 0 && number(database, kTables) == 0;
}

void write_header(Database& database) {
  database.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
  database.execute("PRAGMA user_version = " + std::to_string(kSchemaVersion));
}

}  // namespace

bool mend_header(Database& database) {
  const bool is_right =
      number(database, kUserVersion) == kSchemaVersion && number(database, kApplication) == kApplicationId;
  if (is_right || schema_of(database) != schema_of_a_store()) {
    return false;
  }
  write_header(database);
  return true;
}

void require_ours(Database& database, const std::string& path) {
  if (is_new(database)) {
    return;
  }
  if (number(database, kApplication) != kApplicationId) {
    throw Error(ErrorCode::FailedPrecondition, path,
                "is an SQLite database of another application: give --db another path");
  }
  if (const std::int64_t version = number(database, kUserVersion); version != kSchemaVersion) {
    throw other_schema(path, version, "a new file (--db)");
  }
}

bool create_schema(Database& database, const std::string& path, const std::function<void()>& fill) {
  require_ours(database, path);
  if (!is_new(database)) {
    return false;
  }
  database.transaction(Access::Write, [&] {
    database.execute(std::string(kStoreSchema));
    fill();
    write_header(database);
  });
  return true;
}

}  // namespace cubind::store
