#include "server/store/migration.hpp"

#include <vector>

#include "schemas/store_steps.hpp"

namespace cubind::store {
namespace {

const std::string kUserVersion = "SELECT user_version FROM pragma_user_version";
const std::string kApplication = "SELECT application_id FROM pragma_application_id";
const std::string kTables = "SELECT count(*) FROM sqlite_master";

std::int64_t number(Database& database, const std::string& sql) {
  Query query = database.query(sql);
  query.step();
  return query.integer();
}

}  // namespace

void require_ours(Database& database, std::span<const std::string> steps, const std::string& path) {
  const std::int64_t version = number(database, kUserVersion);
  const auto newest = static_cast<std::int64_t>(steps.size());
  const bool is_new = version == 0 && number(database, kTables) == 0;
  if (!is_new && number(database, kApplication) != kApplicationId) {
    throw Error(ErrorCode::FailedPrecondition, path,
                "is an SQLite database of another application: give --db another path");
  }
  if (version > newest) {
    throw Error(ErrorCode::FailedPrecondition, path,
                "has schema version " + std::to_string(version) + ", this cubind knows up to " +
                    std::to_string(newest) + ": it was written by a newer one");
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
  database.transaction("BEGIN IMMEDIATE", [&] {
    for (const std::string& step : steps.subspan(static_cast<std::size_t>(version))) {
      database.execute(step);
    }
    if (version == 0) {
      fill();
    }
    database.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
    database.execute("PRAGMA user_version = " + std::to_string(newest));
  });
  return version == 0;
}

std::span<const std::string> schema_steps() {
  static const std::vector<std::string> steps(kStoreSteps.begin(), kStoreSteps.end());
  return steps;
}

}  // namespace cubind::store
