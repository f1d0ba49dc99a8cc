#include "server/access/socket_group.hpp"

#include <grp.h>

#include <vector>

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

}  // namespace cubind
