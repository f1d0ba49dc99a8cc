#include "tuner/spec/source_folders.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/unique_fd.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

bool is_there(int failure) {
  switch (failure) {
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case ELOOP:
    case ENAMETOOLONG:
      return false;
    default:
      return true;
  }
}

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

}  // namespace

bool SourceFolders::lies_within(const fs::path& canonical) const {
  return std::ranges::any_of(folders_, [&](const fs::path& folder) {
    std::error_code failed;
    const fs::path target = fs::canonical(folder, failed);
    return !failed && is_below(canonical, target);
  });
}

bool SourceFolders::hold(const fs::path& folder) const {
  return folders_.empty() || lies_within(folder.lexically_normal());
}

bool SourceFolders::holds_target(const fs::path& path) const {
  std::error_code failed;
  const fs::path target = fs::canonical(path, failed);
  return !failed && (folders_.empty() || lies_within(target));
}

std::optional<std::string> SourceFolders::read(const fs::path& path, std::uint64_t max_bytes) const {
  if (folders_.empty()) {
    std::error_code failed;
    return fs::is_regular_file(path, failed) ? std::optional(read_file(path, max_bytes)) : std::nullopt;
  }
  // The file is held before it is judged, so that no link changes in between. O_PATH: a device is not opened
  // by looking at it.
  const UniqueFd held(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!held) {
    if (is_there(errno)) {
      throw system_error(path.string(), "open", errno);
    }
    return std::nullopt;
  }
  const fs::path file = "/proc/self/fd/" + std::to_string(held.get());
  struct stat info {};
  std::error_code failed;
  const fs::path target = fs::read_symlink(file, failed);
  if (::fstat(held.get(), &info) != 0 || !S_ISREG(info.st_mode) || failed || !lies_within(target)) {
    return std::nullopt;
  }
  try {
    return read_file(file, max_bytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::PermissionDenied) {
      return std::nullopt;
    }
    throw Error(error.code(), path.string(), error.cause());
  }
}

}  // namespace cubind
