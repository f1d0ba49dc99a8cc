// The identity behind a call, and its rights.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "access/token.hpp"
#include "server/access/call_rules.hpp"
#include "server/access/socket_group.hpp"

namespace cubind {

struct Caller {
  enum class Known : std::uint8_t {
    BySocket,  // it opened the Unix socket of the daemon's user
    ByGroup,   // it opened the Unix socket of the group
    ByToken,
    NotAtAll,  // --insecure without --tokens: everyone who reaches the address
  };

  std::string name = {};
  std::string token = {};  // id; empty if it has none
  Digest secret = {};      // of the token
  RoleSet roles = {};
  Scope namespaces = {};
  Scope device_classes = {};
  std::optional<std::chrono::system_clock::time_point> expires = {};
  Known known = Known::ByToken;

  bool has_all_namespaces() const { return covers(namespaces, kEverything); }
  /// `alice (token 9f3c2ab811d04e57)`
  std::string to_string() const;
};

Caller caller_of_token(const Token& token);
/// An admin in every namespace.
Caller caller_of_socket();
/// The same, which asked for no more than the role of a reader.
Caller reader_of_socket();
/// All members of the group as one caller, in every namespace.
Caller caller_of_group(const SocketGroup& group);
Caller unknown_caller();

/// Whether the caller's roles and namespaces allow the call. Pure.
bool may(const Caller& caller, Call call);

/// The same check; these throw PermissionDenied with the missing right and the caller's rights.
void require(const Caller& caller, Call call);
void require_namespace(const Caller& caller, Call call, const std::string& name_space);
/// For a call on all namespaces; `how` says how to limit it to one.
void require_all_namespaces(const Caller& caller, Call call, const std::string& how);
/// For an agent that offers devices of these classes.
void require_device_class(const Caller& caller, const std::string& label);

}  // namespace cubind
