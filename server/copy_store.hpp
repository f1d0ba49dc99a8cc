// `cubind --copy-store-to`: a store moves between a file of SQLite and a database of PostgreSQL.
#pragma once

#include "server/config.hpp"

namespace cubind {

/// Prints what was copied; gives the program's exit code.
int copy_store(const Config& config);

}  // namespace cubind
