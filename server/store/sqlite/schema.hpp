// The schema of a store in SQLite.
#pragma once

#include <functional>
#include <string>

#include "server/store/sqlite/database.hpp"

namespace cubind::store {

/// A file with exactly the schema of a store is one, whatever the two numbers in its header say: they are
/// damaged, and written again. False: nothing was wrong with them, or it is another schema.
bool mend_header(Database& database);

/// Throws FailedPrecondition for a file of another application, and for a store with another version of the
/// schema. Changes nothing.
void require_ours(Database& database, const std::string& path);

/// Makes a new file a store and runs `fill`, in one transaction: after a failure the file is unchanged.
/// False: it is a store already. Throws like require_ours().
bool create_schema(Database& database, const std::string& path, const std::function<void()>& fill);

}  // namespace cubind::store
