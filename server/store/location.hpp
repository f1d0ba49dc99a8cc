// The place of a store, and the process that has it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"

namespace cubind::store {

/// Whether a file system (its magic number, statfs f_type) keeps its files on another machine: SQLite's locks
/// and its shared memory do not work there.
bool is_network_file_system(std::uint64_t magic);

/// Throws FailedPrecondition if `folder` is on a network file system.
void refuse_network_file_system(const std::filesystem::path& folder);

/// The path that links lead to, of a file that need not exist in a folder that does: one file has one lock,
/// whatever name it is opened by.
std::filesystem::path resolved(std::filesystem::path file);

/// Creates the folder, for its owner alone, if it is missing. If it cannot be made or written to, the error
/// ends with `remedy`.
void make_folder(const std::filesystem::path& folder, const std::string& remedy);

/// Locks "PATH.lock" for the life of the descriptor. Throws FailedPrecondition if another process has it,
/// naming its pid and the address that it gave.
UniqueFd lock_file(const std::filesystem::path& path, const std::string& address);

/// Throws FailedPrecondition if the path names a folder, a device or a pipe.
void refuse_other_than_file(const std::filesystem::path& path);

/// Locks the database itself, whose "PATH.lock" someone may have removed, and creates it if it is missing. It
/// is a lock of flock(2), which SQLite's own locks (fcntl) do not see. They end when any descriptor of the
/// file is closed: this one has to outlive SQLite's connections. Throws FailedPrecondition if another process
/// has it.
UniqueFd lock_database(const std::filesystem::path& path);

/// Two bytes of a database's header say which formats its reader and its writer must know, and they are the
/// same. If only the writer's is unknown, it is damaged and written again: otherwise SQLite would open the
/// file read-only. True if that was so.
bool mend_write_version(const std::filesystem::path& path);

/// Renames the database's files to "PATH.damaged-DATE" (its journal to "PATH.damaged-DATE-wal"), so that
/// SQLite finds them together. Gives the new path.
std::filesystem::path move_aside(const std::filesystem::path& path, const std::string& date);

/// Tells which file a name leads to, as long as the file is open.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};

/// Absent where no file has this name.
std::optional<FileId> file_id(const std::filesystem::path& path);

}  // namespace cubind::store
