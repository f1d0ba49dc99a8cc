// The identity behind a call, and what it may do.
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
    BySocket,  // it opened the Unix socket of the daemon's own user
    ByGroup,   // it opened the Unix socket of the group
    ByToken,
    NotAtAll,  // --insecure without --tokens: everyone who reaches the address
  };

  std::string name = {};
  std::string token = {};  // id; empty: it has none
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
/// Admins in every namespace.
Caller caller_of_socket();
/// Stands for all members, in every namespace.
Caller caller_of_group(const SocketGroup& group);
Caller unknown_caller();

/// The pure rule: whether the caller's roles and namespaces allow the call.
bool may(const Caller& caller, Call call);
bool may(const Caller& caller, Call call, const std::string& name_space);

/// The same; throw PermissionDenied, with what is missing and what the caller has.
void require(const Caller& caller, Call call);
void require_namespace(const Caller& caller, Call call, const std::string& name_space);
/// For a call that would reach into all namespaces; `how` says how it is limited to one.
void require_all_namespaces(const Caller& caller, Call call, const std::string& how);
/// An agent may offer devices of these classes.
void require_device_class(const Caller& caller, const std::string& label);

}  // namespace cubind
