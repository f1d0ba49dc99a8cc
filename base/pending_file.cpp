#include "base/pending_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
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

}  // namespace

PendingFile::PendingFile(fs::path target)
    : target_(std::move(target)),
      path_((folder() / ("." + target_.filename().string() + ".XXXXXX")).string()),
      fd_(::mkostemp(path_.data(), O_CLOEXEC)) {
  if (!fd_) {
    throw system_error(target_.string(), "cannot create a temporary file next to it", errno);
  }
}

PendingFile::~PendingFile() {
  if (!committed_) {
    ::unlink(path_.c_str());
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
  if (::rename(path_.c_str(), target_.c_str()) != 0) {
    throw system_error(target_.string(), "cannot replace", errno);
  }
  committed_ = true;
  sync_folder(folder());
}

}  // namespace cubind
