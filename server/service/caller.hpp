// The caller of a call: the unit of fair sharing.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

namespace cubind {

/// The host that the call came from (a Unix socket shows none), and what the caller calls himself: the
/// metadata "cubind-caller", which the client library sets to its process. Callers that say nothing are one.
/// It is no proof of anything.
std::string caller_of(const grpc::CallbackServerContext& call);

}  // namespace cubind
