#include "server/listener.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "server/store/location.hpp"

namespace cubind {

namespace {

namespace fs = std::filesystem;

bool is_trusted(uid_t owner) { return owner == ::geteuid() || owner == 0; }

/// A user who can write to the folder can replace the socket, and ranks would load foreign code. In a sticky
/// folder (/tmp) users cannot move each other's files.
void require_own_folder(const fs::path& folder) {
  struct stat link {};
  struct stat info {};
  if (::lstat(folder.c_str(), &link) != 0 || ::stat(folder.c_str(), &info) != 0) {
    throw system_error(folder.string(), "stat", errno);
  }
  const bool others_write = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0;
  if (!is_trusted(link.st_uid) || !is_trusted(info.st_uid) || others_write) {
    throw Error(ErrorCode::FailedPrecondition, "--socket: folder " + folder.string(),
                others_write
                    ? "users other than its owner can write to it and replace the socket: chmod go-w, or "
                      "name another folder"
                    : "belongs to user " + std::to_string(info.st_uid) +
                          ", who can replace the socket: name a folder of user " +
                          std::to_string(::geteuid()));
  }
}

/// Users of the group have to pass each folder above the socket.
void require_reachable(const fs::path& socket, const SocketGroup& group) {
  for (fs::path folder = socket.parent_path();; folder = folder.parent_path()) {
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) {
      throw system_error(folder.string(), "stat", errno);
    }
    const mode_t needed = info.st_gid == group.id ? S_IXGRP : S_IXOTH;
    if ((info.st_mode & needed) == 0) {
      throw Error(ErrorCode::FailedPrecondition, "--socket-group " + group.name,
                  "its members cannot enter the folder " + folder.string() +
                      ": chmod +x it, or name a socket elsewhere (--socket /run/cubind/cubind.sock)");
    }
    if (folder == folder.root_path()) {
      return;
    }
  }
}

bool names_socket(const fs::path& path) {
  std::error_code failed;
  return fs::is_socket(fs::symlink_status(path, failed));
}

/// What a dead daemon left.
void remove_socket(const fs::path& path) {
  if (names_socket(path)) {
    std::error_code failed;
    fs::remove(path, failed);
  }
}

}  // namespace

SocketFile::SocketFile(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.string().size() >= sizeof(sockaddr_un{}.sun_path)) {
    throw Error(ErrorCode::InvalidArgument, "--socket " + path_.string(),
                "is longer than the " + std::to_string(sizeof(sockaddr_un{}.sun_path) - 1) +
                    " bytes of a socket address");
  }
  store::make_folder(path_.parent_path(),
                     "--socket PATH or XDG_RUNTIME_DIR names another place for the socket");
  require_own_folder(path_.parent_path());
  std::error_code failed;
  if (const auto there = fs::symlink_status(path_, failed); fs::exists(there) && !fs::is_socket(there)) {
    throw Error(ErrorCode::FailedPrecondition, "--socket " + path_.string(),
                "exists and is not a socket: name another path, or remove it");
  }
  lock_ = store::lock_file(path_, address());
  remove_socket(path_);
}

SocketFile::~SocketFile() { remove_socket(path_); }

void SocketFile::restrict_access() {
  if (::chmod(path_.c_str(), 0600) != 0) {
    throw system_error(path_.string(), "chmod", errno);
  }
  was_there_ = true;
}

// At the end of a user's last session systemd removes $XDG_RUNTIME_DIR with the sockets in it.
void SocketFile::watch() {
  const bool is_there = names_socket(path_);
  if (was_there_.exchange(is_there) && !is_there) {
    log_error(address() +
              ": the socket was removed, and no new caller reaches this daemon there: end it (kill " +
              std::to_string(::getpid()) + ") and start it again; its jobs go on then");
  }
}

void SocketFile::open_to(const SocketGroup& group) const {
  require_reachable(path_, group);
  if (::chown(path_.c_str(), static_cast<uid_t>(-1), group.id) != 0) {
    throw Error(ErrorCode::FailedPrecondition, "--socket-group " + group.name,
                "the daemon's user is not in this group and cannot give it a socket: usermod -aG " +
                    group.name + " USER");
  }
  if (::chmod(path_.c_str(), 0660) != 0) {
    throw system_error(path_.string(), "chmod", errno);
  }
}

void SocketFile::require_answer(std::chrono::milliseconds patience) const {
  // HTTP/2's preface with an empty SETTINGS frame (RFC 9113, 3.4): the server answers with its own.
  // Connecting proves nothing: the kernel queues connections before the server accepts them.
  constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 24 + 9);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  path_.string().copy(name.sun_path, sizeof(name.sun_path) - 1);
  pollfd wait{socket.get(), POLLIN, 0};
  char byte = 0;
  const bool answers = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 &&
                       ::send(socket.get(), kPreface.data(), kPreface.size(), MSG_NOSIGNAL) > 0 &&
                       ::poll(&wait, 1, static_cast<int>(patience.count())) == 1 &&
                       ::recv(socket.get(), &byte, 1, 0) == 1;
  if (!answers) {
    throw Error(ErrorCode::Unavailable, address(),
                "listens and answers nothing: the process may have too few threads, or too little memory "
                "(ulimit -u, ulimit -v, the limits of its cgroup)");
  }
}

PrivateBind::PrivateBind() : before_(::umask(0177)) {}

PrivateBind::~PrivateBind() { ::umask(before_); }

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    throw system_error("RLIMIT_NOFILE", "getrlimit", errno);
  }
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    log_warning("the limit of open files stays as it is");
  }
}

}  // namespace cubind
