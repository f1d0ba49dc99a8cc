#include "server/access/caller.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

constexpr const char* kAskAnAdmin = ". An admin of the daemon issues another token (`cubindctl token new`)";
constexpr const char* kAskForRole =
    ". The daemon's --socket-group GROUP:tuner gives the group that role; for others an admin issues a token";

std::string listed(const Scope& scope) {
  Scope names;
  for (const std::string& name : scope) {
    names.push_back(quoted(name));
  }
  return join(names, ", ");
}

[[noreturn]] void deny(const Caller& caller, Call call, const std::string& why) {
  throw Error(ErrorCode::PermissionDenied, std::string(rule_of(call).name),
              why + (caller.known == Caller::Known::ByGroup ? kAskForRole : kAskAnAdmin));
}

}  // namespace

std::string Caller::to_string() const { return token.empty() ? name : name + " (token " + token + ")"; }

Caller caller_of_token(const Token& token) {
  return {.name = token.name,
          .token = token.id,
          .secret = token.secret,
          .roles = token.roles,
          .namespaces = token.namespaces,
          .device_classes = token.device_classes,
          .expires = token.expires};
}

Caller caller_of_socket() {
  return {.name = "owner of the socket",
          .roles = {CallerRole::Admin},
          .namespaces = {kEverything},
          .device_classes = {kEverything},
          .known = Caller::Known::BySocket};
}

Caller reader_of_socket() {
  Caller caller = caller_of_socket();
  caller.name += ", as a reader";
  caller.roles = {CallerRole::Reader};
  return caller;
}

Caller caller_of_group(const SocketGroup& group) {
  return {.name = "the group " + group.name,
          .roles = {group.role},
          .namespaces = {kEverything},
          .known = Caller::Known::ByGroup};
}

Caller unknown_caller() {
  Caller caller = caller_of_socket();
  caller.name = "unknown";
  caller.known = Caller::Known::NotAtAll;
  return caller;
}

bool may(const Caller& caller, Call call) {
  const CallRule& rule = rule_of(call);
  return caller.roles.includes(rule.least) || (rule.for_agents && caller.roles.includes(CallerRole::Agent));
}

void require(const Caller& caller, Call call) {
  if (!may(caller, call)) {
    deny(caller, call,
         "needs the role " + std::string(role_name(rule_of(call).least)) + ", and " + caller.to_string() +
             " is " + caller.roles.to_string());
  }
}

void require_namespace(const Caller& caller, Call call, const std::string& name_space) {
  if (!covers(caller.namespaces, name_space)) {
    deny(caller, call,
         "the namespace " + quoted(name_space) + " is not open to " + caller.to_string() + ", but " +
             listed(caller.namespaces));
  }
}

void require_all_namespaces(const Caller& caller, Call call, const std::string& how) {
  if (!caller.has_all_namespaces()) {
    deny(caller, call,
         "reaches into all namespaces, and only " + listed(caller.namespaces) + " is open to " +
             caller.to_string() + ": " + how);
  }
}

void require_device_class(const Caller& caller, const std::string& label) {
  if (!covers(caller.device_classes, label)) {
    deny(caller, Call::Serve,
         "the device class " + quoted(label) + " is not open to " + caller.to_string() + ", but " +
             listed(caller.device_classes));
  }
}

}  // namespace cubind
