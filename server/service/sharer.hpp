// Whose turn a call is: the unit of fair sharing.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "server/access/caller.hpp"

namespace cubind {

/// The token. Without one, the host that the call came from (a Unix socket shows none) and what the caller
/// calls itself: the metadata "cubind-caller", which the client library sets to its process. Callers that say
/// nothing are one; it is no proof of anything.
/// `peer` is the call's.
std::string sharer_of(const grpc::CallbackServerContext& call, const std::string& peer, const Caller& caller);

}  // namespace cubind
