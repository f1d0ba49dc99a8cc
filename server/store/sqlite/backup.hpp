// Copies of a store, each of one committed state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/unique_fd.hpp"
#include "server/store/sqlite/database.hpp"

namespace cubind::store {

/// A copy of the store at `path`, in a file next to it that has no name any more: closing it removes it.
/// Writers go on meanwhile. Throws the errors of the disk.
UniqueFd snapshot_of(const std::filesystem::path& path);

/// Throws FailedPrecondition where the file has more than one name: SQLite finds its journal by the name, so
/// each name would have its own.
void refuse_hard_link(const std::filesystem::path& path);

}  // namespace cubind::store
