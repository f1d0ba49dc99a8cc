#include "base/error.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

namespace cubind {
namespace {

std::string message(const std::string& where, const std::string& cause) {
  return where.empty() ? cause : where + ": " + cause;
}

ErrorCode code_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
      return ErrorCode::NotFound;
    case EACCES:
    case EPERM:
      return ErrorCode::PermissionDenied;
    case EEXIST:
      return ErrorCode::AlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ErrorCode::ResourceExhausted;
    default:
      return ErrorCode::Unavailable;
  }
}

}  // namespace

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "INVALID_ARGUMENT";
    case ErrorCode::NotFound:
      return "NOT_FOUND";
    case ErrorCode::AlreadyExists:
      return "ALREADY_EXISTS";
    case ErrorCode::FailedPrecondition:
      return "FAILED_PRECONDITION";
    case ErrorCode::ResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case ErrorCode::Unavailable:
      return "UNAVAILABLE";
    case ErrorCode::DeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case ErrorCode::Aborted:
      return "ABORTED";
    case ErrorCode::PermissionDenied:
      return "PERMISSION_DENIED";
    case ErrorCode::DataLoss:
      return "DATA_LOSS";
    case ErrorCode::Unimplemented:
      return "UNIMPLEMENTED";
    case ErrorCode::Cancelled:
      return "CANCELLED";
    case ErrorCode::Internal:
      return "INTERNAL";
  }
  return "INTERNAL";
}

Error::Error(ErrorCode code, std::string where, std::string cause)
    : std::runtime_error(message(where, cause)),
      code_(code),
      where_(std::move(where)),
      cause_(std::move(cause)) {}

Error system_error(std::string where, std::string_view operation, int error_number) {
  // std::strerror is not thread-safe, the category's message is.
  std::string cause(operation);
  cause += ": ";
  cause += std::generic_category().message(error_number);
  return Error(code_of_errno(error_number), std::move(where), std::move(cause));
}

}  // namespace cubind
