// The group whose members may call the daemon through a Unix socket.
#pragma once

#include <sys/types.h>

#include <string>

#include "access/role.hpp"

namespace cubind {

struct SocketGroup {
  std::string name;
  gid_t id = 0;
  CallerRole role = CallerRole::Reader;  // of its members: Reader or Tuner
};

/// Parses "GROUP" or "GROUP:ROLE". Throws InvalidArgument for a group that the system does not know and for a
/// role other than reader and tuner.
SocketGroup parse_socket_group(const std::string& text);

}  // namespace cubind
