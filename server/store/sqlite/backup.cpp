#include "server/store/sqlite/backup.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace cubind::store {
namespace {

namespace fs = std::filesystem;

/// The file that `to` names afterwards is for its owner alone.
void copy(Database& database, const fs::path& to) {
  const UniqueFd made(::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made) {
    throw system_error(to.string(), "open", errno);
  }
  try {
    database.copy_to(to);
  } catch (...) {
    std::error_code ignored;
    fs::remove(to, ignored);
    throw;
  }
}

}  // namespace

UniqueFd snapshot_of(const fs::path& path) {
  // Hidden, like the mark of its generation: "store.db.backup" is what an operator calls a backup.
  const fs::path file = path.parent_path() / ("." + path.filename().string() + ".snapshot");
  std::error_code ignored;
  fs::remove(file, ignored);  // of a daemon that was killed
  Database database(path, Database::Mode::ReadOnly);
  copy(database, file);
  UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const int failure = errno;
  fs::remove(file, ignored);
  if (!fd) {
    throw system_error(file.string(), "open", failure);
  }
  return fd;
}

void refuse_hard_link(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && info.st_nlink > 1) {
    throw Error(
        ErrorCode::FailedPrecondition, path.string(),
        "has " + std::to_string(info.st_nlink) +
            " names (hard links), and a journal belongs to one: remove the others (find DISK -samefile " +
            path.string() + "), or give --db a copy");
  }
}

}  // namespace cubind::store
