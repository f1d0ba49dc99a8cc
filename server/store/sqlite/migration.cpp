#include "server/store/sqlite/migration.hpp"

#include <vector>

#include "schemas/store_steps.hpp"

namespace cubind::store {
namespace {

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

std::vector<std::string> schema_of(std::span<const std::string> steps) {
  Database database(":memory:", Database::Mode::Create);
  for (const std::string& step : steps) {
    database.execute(step);
  }
  return schema_of(database);
}

void write_header(Database& database, std::size_t version) {
  database.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
  database.execute("PRAGMA user_version = " + std::to_string(version));
}

}  // namespace

std::int64_t schema_version(Database& database) { return number(database, kUserVersion); }

bool mend_header(Database& database, std::span<const std::string> steps) {
  const bool is_right = number(database, kUserVersion) == static_cast<std::int64_t>(steps.size()) &&
                        number(database, kApplication) == kApplicationId;
  if (is_right || schema_of(database) != schema_of(steps)) {
    return false;
  }
  write_header(database, steps.size());
  return true;
}

void require_ours(Database& database, std::span<const std::string> steps, const std::string& path) {
  const std::int64_t version = number(database, kUserVersion);
  const auto newest = static_cast<std::int64_t>(steps.size());
  const bool is_new = version == 0 && number(database, kTables) == 0;
  if (!is_new && number(database, kApplication) != kApplicationId) {
    throw Error(ErrorCode::FailedPrecondition, path,
                "is an SQLite database of another application: give --db another path");
  }
  if (version < 0) {
    throw Error(ErrorCode::DataLoss, path,
                "has schema version " + std::to_string(version) + ", which no cubind has written");
  }
  if (version > newest) {
    throw Error(
        ErrorCode::FailedPrecondition, path,
        "has schema version " + std::to_string(version) + ", this cubind knows up to " +
            std::to_string(newest) +
            ": it was written by a newer one. Start that one, or put the copy that it made before its "
            "upgrade (" +
            path + ".v" + std::to_string(newest) + "-DATE) in the store's place");
  }
}

bool migrate(Database& database, std::span<const std::string> steps, const std::string& path,
             const std::function<void()>& fill) {
  require_ours(database, steps, path);
  const std::int64_t version = number(database, kUserVersion);
  const auto newest = static_cast<std::int64_t>(steps.size());
  if (version == newest) {
    return false;
  }
  database.transaction(Access::Write, [&] {
    for (const std::string& step : steps.subspan(static_cast<std::size_t>(version))) {
      database.execute(step);
    }
    if (version == 0) {
      fill();
    }
    write_header(database, steps.size());
  });
  return version == 0;
}

std::span<const std::string> schema_steps() {
  static const std::vector<std::string> steps(kStoreSteps.begin(), kStoreSteps.end());
  return steps;
}

}  // namespace cubind::store
