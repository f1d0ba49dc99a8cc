#include "access/owned_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"

namespace cubind {

void refuse_foreign_writers(const std::filesystem::path& file, const std::string& consequence) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) {
    throw system_error(file.string(), "stat", errno);
  }
  if ((info.st_uid != ::geteuid() && info.st_uid != 0) || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error(ErrorCode::FailedPrecondition, file.string(),
                "other users may write to it, and so " + consequence + ": chown it to user " +
                    std::to_string(::geteuid()) + ", and chmod go-w");
  }
}

}  // namespace cubind
