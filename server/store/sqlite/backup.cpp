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

/// The date of a copy, named "STORE.v7-DATE"; absent: the name is that of another file.
std::optional<std::string> date_in(const std::string& name, const std::string& store) {
  if (!name.starts_with(store + ".v")) {
    return std::nullopt;
  }
  const std::string rest = name.substr(store.size() + 2);
  const std::size_t digits = rest.find_first_not_of("0123456789");
  return digits == 0 || digits == std::string::npos || rest[digits] != '-'
             ? std::nullopt
             : std::optional(rest.substr(digits + 1));
}

void drop_older_copies(const fs::path& path) {
  constexpr std::size_t kKept = 2;
  std::vector<std::pair<std::string, fs::path>> copies;
  for (const auto& item : fs::directory_iterator(path.parent_path())) {
    if (const auto date = date_in(item.path().filename(), path.filename())) {
      copies.emplace_back(*date, item.path());
    }
  }
  std::ranges::sort(copies, std::ranges::greater());
  for (std::size_t i = kKept; i < copies.size(); ++i) {
    fs::remove(copies[i].second);
  }
}

}  // namespace

UniqueFd snapshot_of(const fs::path& path) {
  const fs::path file = path.string() + ".backup";
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

fs::path keep_before_upgrade(Database& database, const fs::path& path, std::int64_t version,
                             const std::string& date) {
  fs::path kept = path.string() + ".v" + std::to_string(version) + "-" + date;
  try {
    copy(database, kept);
  } catch (const Error& error) {
    throw Error(error.code(), kept.string(),
                "the store is not upgraded, because it could not be copied before: make room next to it (" +
                    error.cause() + ")");
  }
  drop_older_copies(path);
  return kept;
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
