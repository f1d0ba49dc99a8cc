#include "server/service/status.hpp"

#include <string>

namespace cubind {
namespace {

grpc::StatusCode code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::NotFound:
      return grpc::StatusCode::NOT_FOUND;
    case ErrorCode::AlreadyExists:
      return grpc::StatusCode::ALREADY_EXISTS;
    case ErrorCode::FailedPrecondition:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorCode::ResourceExhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorCode::Unavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case ErrorCode::DeadlineExceeded:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorCode::Aborted:
      return grpc::StatusCode::ABORTED;
    case ErrorCode::PermissionDenied:
      return grpc::StatusCode::PERMISSION_DENIED;
    case ErrorCode::DataLoss:
      return grpc::StatusCode::DATA_LOSS;
    case ErrorCode::Unimplemented:
      return grpc::StatusCode::UNIMPLEMENTED;
    case ErrorCode::Cancelled:
      return grpc::StatusCode::CANCELLED;
    case ErrorCode::Internal:
      return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::INTERNAL;
}

/// A status travels in a header: gRPC drops the whole reply where that is too long.
constexpr std::size_t kMaxMessage = 4000;

}  // namespace

grpc::Status to_status(const Error& error) {
  std::string message = error.what();
  if (message.size() > kMaxMessage) {
    message.resize(kMaxMessage);
    message += "...";
  }
  return {code_of(error.code()), message};
}

grpc::Status current_status() {
  try {
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::DataLoss || error.code() == ErrorCode::Internal) {
      log_error(error.what());
    }
    return to_status(error);
  } catch (const std::exception& fault) {
    log_error(std::string("a request failed unexpectedly: ") + fault.what());
    return {grpc::StatusCode::INTERNAL, fault.what()};
  }
}

}  // namespace cubind
