// What a failed call says: gRPC's own words about a connection become what was tried, what happened, and what
// to do. The daemon's words stay as they are.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "base/error.hpp"

namespace cubind {

/// Throws Error(InvalidArgument) for any other text than unix:///path, with a path that fits into a socket's
/// address, and host:port: gRPC is asked for neither.
void check_address(const std::string& address);

/// The error of a status that is not OK.
Error error_of(const grpc::Status& status, const std::string& address);

}  // namespace cubind
