// The schema of a store in PostgreSQL.
#pragma once

#include "server/store/connection.hpp"

namespace cubind::store {

/// False: the database is new. Throws FailedPrecondition where it has tables of another application, or a
/// store with another version of the schema.
bool has_schema(Connection& connection);

/// In a new database, within the caller's transaction.
void create_schema(Connection& connection);

}  // namespace cubind::store
