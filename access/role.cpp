#include "access/role.hpp"

#include <vector>

#include "base/text.hpp"

namespace cubind {

std::string_view role_name(CallerRole role) {
  switch (role) {
    case CallerRole::Reader:
      return "reader";
    case CallerRole::Tuner:
      return "tuner";
    case CallerRole::Publisher:
      return "publisher";
    case CallerRole::Agent:
      return "agent";
    case CallerRole::Admin:
      return "admin";
  }
  return "";
}

std::optional<CallerRole> role_of_name(std::string_view name) {
  for (const CallerRole role : kCallerRoles) {
    if (role_name(role) == name) {
      return role;
    }
  }
  return std::nullopt;
}

std::string RoleSet::to_string() const {
  std::vector<std::string_view> names;
  for (const CallerRole role : kCallerRoles) {
    if (has(role)) {
      names.push_back(role_name(role));
    }
  }
  return join(names, ", ");
}

}  // namespace cubind
