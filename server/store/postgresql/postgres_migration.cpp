#include "server/store/postgresql/postgres_migration.hpp"

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "schemas/store_postgresql_steps.hpp"

namespace cubind::store {
namespace {

const std::string kHasPostgresVersion =
    "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND "
    "tablename = 'cubind_schema'";
const std::string kPostgresTables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
const std::string kPostgresVersion = "SELECT version FROM cubind_schema";
const std::string kInsertVersion = "INSERT INTO cubind_schema (version) VALUES (?)";
const std::string kSetVersion = "UPDATE cubind_schema SET version = ?";

std::int64_t first_number(Connection& connection, const std::string& sql) {
  Statement query = connection.query(sql);
  return query.step() ? query.integer() : 0;
}

/// 0: the database is new.
std::int64_t version_of(Connection& connection, std::int64_t newest) {
  if (first_number(connection, kHasPostgresVersion) == 0) {
    if (first_number(connection, kPostgresTables) > 0) {
      throw Error(ErrorCode::FailedPrecondition, "store",
                  "the database holds tables of another application: give --store a database of its own");
    }
    return 0;
  }
  const std::int64_t version = first_number(connection, kPostgresVersion);
  if (version < 1) {
    throw Error(ErrorCode::DataLoss, "store", "its table cubind_schema holds no version: restore a dump");
  }
  if (version > newest) {
    throw Error(ErrorCode::FailedPrecondition, "store",
                "has schema version " + std::to_string(version) + ", this cubind knows up to " +
                    std::to_string(newest) + ": it was written by a newer one. Start that one");
  }
  return version;
}

}  // namespace

bool has_newest_schema(Connection& connection, std::span<const std::string> steps) {
  const auto newest = static_cast<std::int64_t>(steps.size());
  bool has = false;
  connection.transaction(Access::Read, [&] { has = version_of(connection, newest) == newest; });
  return has;
}

void migrate_postgres(Connection& connection, std::span<const std::string> steps,
                      const std::function<void()>& fill) {
  const auto newest = static_cast<std::int64_t>(steps.size());
  connection.transaction(Access::Write, [&] {
    const std::int64_t version = version_of(connection, newest);
    if (version == newest) {
      return;
    }
    for (const std::string& step : steps.subspan(static_cast<std::size_t>(version))) {
      connection.execute(step);
    }
    connection.query(version == 0 ? kInsertVersion : kSetVersion).bind(newest).run();
    if (version == 0) {
      fill();
    } else {
      log_info("store: is upgraded to schema version " + std::to_string(newest));
    }
  });
}

std::span<const std::string> postgres_schema_steps() {
  static const std::vector<std::string> steps(kPostgresSteps.begin(), kPostgresSteps.end());
  return steps;
}

}  // namespace cubind::store
