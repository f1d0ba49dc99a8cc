#include "server/access/socket_group.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

constexpr std::size_t kEntryBytes = std::size_t{64} << 10;  // a group's entry lists its members

CallerRole role_in(const std::string& name, const std::string& where) {
  const auto role = role_of_name(name);
  if (role != CallerRole::Reader && role != CallerRole::Tuner) {
    throw Error(ErrorCode::InvalidArgument, where,
                quoted(name) + " is no role for a group: write reader or tuner");
  }
  return *role;
}

}  // namespace

SocketGroup parse_socket_group(const std::string& text) {
  const std::string where = "--socket-group " + text;
  const std::size_t colon = text.find(':');
  SocketGroup parsed{.name = text.substr(0, colon)};
  if (colon != std::string::npos) {
    parsed.role = role_in(text.substr(colon + 1), where);
  }
  std::vector<char> buffer(kEntryBytes);
  group entry{};
  group* found = nullptr;
  ::getgrnam_r(parsed.name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) {
    throw Error(ErrorCode::InvalidArgument, where,
                "no group " + quoted(parsed.name) + " exists: groupadd makes it");
  }
  parsed.id = found->gr_gid;
  return parsed;
}

bool SocketPeer::is_in(gid_t group) const { return std::ranges::find(groups, group) != groups.end(); }

std::optional<SocketPeer> peer_of_socket(int connection) {
  ucred who{};
  socklen_t size = sizeof(who);
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    return std::nullopt;
  }
  SocketPeer peer{.user = who.uid};
  socklen_t bytes = 0;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, nullptr, &bytes) != 0 && errno == ERANGE) {
    peer.groups.resize(bytes / sizeof(gid_t));
    if (::getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &bytes) != 0) {
      return std::nullopt;
    }
  }
  peer.groups.push_back(who.gid);
  return peer;
}

std::string user_text(uid_t user) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found);
  const std::string number = std::to_string(user);
  return found == nullptr ? "user " + number : "user " + std::string(entry.pw_name) + " (uid " + number + ")";
}

}  // namespace cubind
