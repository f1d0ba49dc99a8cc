// The group whose members may open the daemon's Unix socket, and the users that the kernel names behind it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "access/role.hpp"

namespace cubind {

struct SocketGroup {
  std::string name;
  gid_t id = 0;
  CallerRole role = CallerRole::Reader;  // of its members: Reader or Tuner
};

/// "GROUP" or "GROUP:ROLE". Throws InvalidArgument for a group that the system does not know and for another
/// role than reader and tuner.
SocketGroup parse_socket_group(const std::string& text);

/// The process that has connected, as it was then.
struct SocketPeer {
  uid_t user = 0;
  std::vector<gid_t> groups = {};

  bool is_in(gid_t group) const;
};

/// Absent: the kernel does not say.
std::optional<SocketPeer> peer_of_socket(int connection);

/// "user alice (uid 1001)"; "user 1001" if the system has no name for it.
std::string user_text(uid_t user);

}  // namespace cubind
