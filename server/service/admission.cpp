#include "server/service/admission.hpp"

#include "server/access/audit_log.hpp"
#include "server/service/metadata.hpp"

namespace cubind {
namespace {

/// The daemon's own socket has insecure credentials, the group's has local ones.
bool is_of_group(const grpc::AuthContext& connection) {
  const auto type = connection.FindPropertyValues("transport_security_type");
  return type.empty() || type.front() != "insecure";
}

const Gate::CallerPtr& caller_on_socket(const Gate& gate, const grpc::CallbackServerContext& call) {
  if (gate.socket_group() && is_of_group(*call.auth_context())) {
    return gate.socket_group();
  }
  return metadata_of(call, "cubind-role") == "reader" ? gate.socket_reader() : gate.socket_owner();
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
