// The addresses that a daemon listens on, and that only one does.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>

#include "base/unique_fd.hpp"
#include "server/access/socket_group.hpp"

namespace cubind {

/// A Unix socket's path for one daemon: its folder is made with mode 0700, "PATH.lock" is locked, a socket
/// file that a dead daemon left is removed. Destroying it removes the socket file. Throws FailedPrecondition
/// if another daemon lives there, if the path names something that is not a socket, and if another user could
/// put his own socket into the folder; InvalidArgument if the path is too long for a socket address.
class SocketFile {
 public:
  explicit SocketFile(std::filesystem::path path);
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

  /// "unix:///run/user/1000/cubind/cubind.sock"
  std::string address() const { return "unix://" + path_.string(); }
  /// After the server has bound it: mode 0600.
  void restrict_access();
  /// Logs once that the socket is gone which was there at the previous call or restrict_access(). For one
  /// thread.
  void watch();
  /// After the server has bound it: the group's, with mode 0660. Throws FailedPrecondition if members could
  /// not reach it, or the daemon's user may not give it to the group.
  void open_to(const SocketGroup& group) const;
  /// Throws Unavailable if the server leaves a connection without a word for so long.
  void require_answer(std::chrono::milliseconds patience) const;

 private:
  const std::filesystem::path path_;
  UniqueFd lock_;
  std::atomic<bool> was_there_ = false;
};

/// While it lives, the files of this process are for its user alone (umask 0177): a socket that is bound
/// meanwhile is closed to other users even before its mode is set. It holds for the whole process: no other
/// thread may make a folder meanwhile.
class PrivateBind {
 public:
  PrivateBind();
  ~PrivateBind();
  PrivateBind(const PrivateBind&) = delete;
  PrivateBind& operator=(const PrivateBind&) = delete;

 private:
  const unsigned before_;
};

/// Raises the limit of open descriptors to the hard one: a daemon without descriptors ends (kListenerLost).
void raise_descriptor_limit();

}  // namespace cubind
