// What a failed call says. A status with the daemon's mark is the daemon's word and stays as it is; any other
// is a fault of the connection, and the error says at which address and what to do.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <string>

#include "base/error.hpp"

namespace cubind {

/// The error of a call that has ended with a status that is not OK.
Error error_of(const grpc::Status& status, const grpc::ClientContext& call, const std::string& address);

}  // namespace cubind
