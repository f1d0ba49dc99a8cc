#include "server/service/admission.hpp"

#include "server/access/audit_log.hpp"
#include "server/access/unauthenticated.hpp"
#include "server/service/metadata.hpp"

namespace cubind {

namespace {

std::string property_of(const grpc::AuthContext& connection, const char* name) {
  const auto found = connection.FindPropertyValues(name);
  return found.empty() ? "" : std::string(found.front().data(), found.front().size());
}

/// GroupSocket gives each connection that is not the daemon's own user's credentials that are not insecure.
Gate::CallerPtr caller_on_socket(const Gate& gate, const grpc::CallbackServerContext& call) {
  if (!gate.has_members()) {
    return gate.socket_owner();
  }
  const auto connection = call.auth_context();
  if (const std::string user = property_of(*connection, kSocketUser); !user.empty()) {
    return gate.socket_member(user);
  }
  if (property_of(*connection, "transport_security_type") != "insecure") {
    throw Unauthenticated("the user behind the socket is not known");
  }
  return gate.socket_owner();
}

}  // namespace

Gate::CallerPtr caller_behind(const ServiceContext& context, const grpc::CallbackServerContext& call,
                              const std::string& peer) {
  if (peer.starts_with("unix:")) {
    return caller_on_socket(context.gate, call);
  }
  return context.gate.caller_of(metadata_of(call, "authorization"));
}

RequestId request_of(const grpc::CallbackServerContext& call) {
  return request_id_from(metadata_of(call, "x-request-id"));
}

void note_refused(const ServiceContext& context, const grpc::CallbackServerContext& call, Call kind,
                  const Caller* caller, const grpc::Status& status) {
  context.audit.refused({.call = kind,
                         .caller = caller == nullptr ? "" : caller->to_string(),
                         .peer = call.peer(),
                         .name_space = "",
                         .outcome = status.error_message()});
}

}  // namespace cubind
