#pragma once

#include <filesystem>
#include <string>

#include "base/unique_fd.hpp"
#include "server/config.hpp"

namespace cubind {

/// Where callers' definitions lie, and the lock of that place.
struct DefinitionsFolder {
  std::filesystem::path folder;
  UniqueFd lock;
};

/// A file of SQLite is one daemon's, and so is what lies next to it. Daemons of one machine may share a
/// database of PostgreSQL: each has a folder of its own.
/// `address`: the daemon's, by which others know who holds the lock. Throws the errors of files, and
/// FailedPrecondition for more daemons than share a database.
DefinitionsFolder definitions_folder(const Config& config, const std::string& address);

}  // namespace cubind
