#include "server/store/postgresql/postgres_schema.hpp"

#include <cstdint>
#include <utility>

#include "schemas/store.hpp"
#include "schemas/store_postgresql.hpp"
#include "server/store/schema_version.hpp"

namespace cubind::store {
namespace {

const std::string kHasPostgresVersion =
    "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND "
    "tablename = 'cubind_schema'";
const std::string kPostgresTables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
const std::string kPostgresVersion = "SELECT version FROM cubind_schema";
const std::string kInsertVersion = "INSERT INTO cubind_schema (version) VALUES (?)";

std::int64_t first_number(Connection& connection, const std::string& sql) {
  Statement query = connection.query(sql);
  return query.step() ? query.integer() : 0;
}

/// As PostgreSQL spells store.sql.
std::string common_schema() {
  std::string schema(kStoreSchema);
  for (const auto& [sqlite, postgresql] :
       std::initializer_list<std::pair<std::string, std::string>>{{" BLOB", " BYTEA"},
                                                                  {" INTEGER", " BIGINT"},
                                                                  {" TEXT", " TEXT COLLATE \"C\""},
                                                                  {") STRICT, WITHOUT ROWID;", ");"},
                                                                  {") STRICT;", ");"}}) {
    for (std::size_t at = 0; (at = schema.find(sqlite, at)) != std::string::npos; at += postgresql.size()) {
      schema.replace(at, sqlite.size(), postgresql);
    }
  }
  return schema;
}

}  // namespace

bool has_schema(Connection& connection) {
  if (first_number(connection, kHasPostgresVersion) == 0) {
    if (first_number(connection, kPostgresTables) > 0) {
      throw Error(ErrorCode::FailedPrecondition, "store",
                  "the database holds tables of another application: give --store a database of its own");
    }
    return false;
  }
  if (const std::int64_t version = first_number(connection, kPostgresVersion); version != kSchemaVersion) {
    throw other_schema("store", version, "a new database (--store)");
  }
  return true;
}

void create_schema(Connection& connection) {
  connection.execute(common_schema() + std::string(kPostgresSchema));
  connection.query(kInsertVersion).bind(kSchemaVersion).run();
}

}  // namespace cubind::store
