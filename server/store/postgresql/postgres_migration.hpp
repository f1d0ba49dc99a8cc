// Versions of the schema in PostgreSQL.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "server/store/connection.hpp"

namespace cubind::store {

/// Throws as migrate_postgres().
bool has_newest_schema(Connection& connection, std::span<const std::string> steps);

/// Brings the database from its version (table cubind_schema; none: new) to `steps.size()`, where step i
/// leads from version i to i + 1, all in one transaction. No other daemon has it open. If the database
/// was new, `fill` has then run within the transaction. Throws FailedPrecondition where the schema has
/// tables of another application, or is that of a newer cubind; then nothing has changed.
void migrate_postgres(Connection& connection, std::span<const std::string> steps,
                      const std::function<void()>& fill);

/// The steps to today's schema.
std::span<const std::string> postgres_schema_steps();

}  // namespace cubind::store
