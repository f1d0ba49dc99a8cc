// Which process calls, and whose turn its call is.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "server/access/caller.hpp"

namespace cubind {

/// The host that the call came from (a Unix socket shows none) and what the caller calls itself: the metadata
/// "cubind-caller", which the client libraries set to their process. Callers that say nothing are one; it is
/// no proof of anything.
/// `peer` is the call's.
std::string process_of(const grpc::CallbackServerContext& call, const std::string& peer);
/// The unit of fair sharing: the token, without one the process.
std::string sharer_of(const std::string& process, const Caller& caller);

}  // namespace cubind
