#include "base/pending_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

void sync_folder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems refuse to sync a folder (EINVAL); the rename is then as durable as they make it.
  if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL)) {
    throw system_error(folder.string(), "cannot sync the folder", errno);
  }
}

std::string descriptor_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

/// A file that ends with its descriptor unless it gets a name. None if the file system or /proc lacks them.
UniqueFd open_nameless(const fs::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  return fd && ::access(descriptor_path(fd.get()).c_str(), F_OK) == 0 ? std::move(fd) : UniqueFd();
}

}  // namespace

fs::path replaceable_file(const fs::path& path) {
  std::error_code absent;
  const fs::file_status there = fs::status(path, absent);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    throw Error(ErrorCode::InvalidArgument, path.string(), "is a folder, a device or a pipe: name a file");
  }
  return fs::exists(there) ? canonical_path(path) : path;
}

PendingFile::PendingFile(fs::path target) : target_(std::move(target)), fd_(open_nameless(folder())) {
  if (fd_) {
    return;
  }
  path_ = (folder() / ("." + target_.filename().string() + ".XXXXXX")).string();
  fd_ = UniqueFd(::mkostemp(path_.data(), O_CLOEXEC));
  if (!fd_) {
    throw system_error(target_.string(), "cannot create a temporary file next to it", errno);
  }
}

PendingFile::~PendingFile() {
  if (!committed_ && !path_.empty()) {
    ::unlink(path_.c_str());
  }
}

// A link replaces no file: only a rename does.
void PendingFile::give_name() {
  const std::string prefix = "." + target_.filename().string() + "." + std::to_string(::getpid()) + ".";
  for (unsigned number = 0; path_.empty(); ++number) {
    const std::string path = (folder() / (prefix + std::to_string(number))).string();
    if (::linkat(AT_FDCWD, descriptor_path(fd_.get()).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) ==
        0) {
      path_ = path;
    } else if (errno != EEXIST) {
      throw system_error(target_.string(), "cannot name the file", errno);
    }
  }
}

fs::path PendingFile::folder() const {
  return target_.has_parent_path() ? target_.parent_path() : fs::path(".");
}

void PendingFile::append(std::string_view bytes) { write_all(fd_.get(), bytes, target_); }

void PendingFile::commit(unsigned mode) {
  if (::fchmod(fd_.get(), static_cast<mode_t>(mode)) != 0) {
    throw system_error(target_.string(), "cannot set the mode", errno);
  }
  if (::fsync(fd_.get()) != 0) {
    throw system_error(target_.string(), "cannot sync", errno);
  }
  give_name();
  if (::rename(path_.c_str(), target_.c_str()) != 0) {
    throw system_error(target_.string(), "cannot replace", errno);
  }
  committed_ = true;
  sync_folder(folder());
}

}  // namespace cubind
