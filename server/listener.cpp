#include "server/listener.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "server/store/location.hpp"

namespace cubind {

SocketPlace::SocketPlace(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.string().size() >= sizeof(sockaddr_un{}.sun_path)) {
    throw Error(ErrorCode::InvalidArgument, "--socket " + path_.string(),
                "is longer than the " + std::to_string(sizeof(sockaddr_un{}.sun_path) - 1) +
                    " bytes of a socket address");
  }
  create_folders(path_.parent_path(), 0700);
  lock_ = store::lock_file(path_);
  std::error_code failed;
  std::filesystem::remove(path_, failed);
}

SocketPlace::~SocketPlace() {
  std::error_code failed;
  std::filesystem::remove(path_, failed);
}

void SocketPlace::restrict_access() const {
  if (::chmod(path_.c_str(), 0600) != 0) {
    throw system_error(path_.string(), "chmod", errno);
  }
}

PrivateBind::PrivateBind() : before_(::umask(0177)) {}

PrivateBind::~PrivateBind() { ::umask(before_); }

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    throw system_error("RLIMIT_NOFILE", "getrlimit", errno);
  }
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    log_warning("the limit of open files stays as it is");
  }
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace cubind
