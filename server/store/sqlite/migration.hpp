// Versions of the schema.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "server/store/sqlite/database.hpp"

namespace cubind::store {

inline constexpr std::int64_t kApplicationId = 0x63756264;  // "cubd"

/// PRAGMA user_version; 0: new.
std::int64_t schema_version(Database& database);

/// A file with exactly the schema of all steps is a current store, whatever the two numbers in its header
/// say: they are damaged, and written again. False: nothing was wrong with them, or it is another schema.
bool mend_header(Database& database, std::span<const std::string> steps);

/// Throws FailedPrecondition for a file of another application, and for a file of a newer cubind. Changes
/// nothing.
void require_ours(Database& database, std::span<const std::string> steps, const std::string& path);

/// Brings a database from its version (PRAGMA user_version; 0: new) to `steps.size()`, where step i leads
/// from version i to i + 1, all in one transaction: after a failure the file is unchanged. True if the file
/// was new; `fill` has then run within the transaction. Throws like require_ours().
bool migrate(
    Database& database, std::span<const std::string> steps, const std::string& path,
    const std::function<void()>& fill = [] {});

/// The steps to today's schema.
std::span<const std::string> schema_steps();

}  // namespace cubind::store
