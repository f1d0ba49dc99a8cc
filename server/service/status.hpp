// The one place where faults become gRPC's.
#pragma once

#include <grpcpp/support/status.h>

#include <exception>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"

namespace cubind {

grpc::Status to_status(const Error& error);
/// "not_found".
std::string status_name(grpc::StatusCode code);
/// The status of the exception in a catch block: an Error keeps its code, anything else is INTERNAL and
/// logged.
grpc::Status current_status();

/// OK, or the error of `body`.
template <typename Body>
grpc::Status guarded(Body&& body) {
  try {
    body();
    return grpc::Status::OK;
  } catch (...) {
    return current_status();
  }
}

}  // namespace cubind
