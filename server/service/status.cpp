#include "server/service/status.hpp"

#include <string>

#include "base/text.hpp"

namespace cubind {
namespace {

template <ErrorCode code, grpc::StatusCode status>
constexpr bool same = static_cast<int>(code) == static_cast<int>(status);

static_assert(same<ErrorCode::InvalidArgument, grpc::StatusCode::INVALID_ARGUMENT> &&
              same<ErrorCode::NotFound, grpc::StatusCode::NOT_FOUND> &&
              same<ErrorCode::AlreadyExists, grpc::StatusCode::ALREADY_EXISTS> &&
              same<ErrorCode::FailedPrecondition, grpc::StatusCode::FAILED_PRECONDITION> &&
              same<ErrorCode::ResourceExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED> &&
              same<ErrorCode::Unavailable, grpc::StatusCode::UNAVAILABLE> &&
              same<ErrorCode::DeadlineExceeded, grpc::StatusCode::DEADLINE_EXCEEDED> &&
              same<ErrorCode::Aborted, grpc::StatusCode::ABORTED> &&
              same<ErrorCode::PermissionDenied, grpc::StatusCode::PERMISSION_DENIED> &&
              same<ErrorCode::DataLoss, grpc::StatusCode::DATA_LOSS> &&
              same<ErrorCode::Unimplemented, grpc::StatusCode::UNIMPLEMENTED> &&
              same<ErrorCode::Cancelled, grpc::StatusCode::CANCELLED> &&
              same<ErrorCode::Internal, grpc::StatusCode::INTERNAL>);

/// A status travels in a header: gRPC drops the whole reply where that is too long.
constexpr std::size_t kMaxMessage = 4000;

}  // namespace

grpc::Status to_status(const Error& error) {
  std::string message = error.what();
  if (message.size() > kMaxMessage) {
    message = cut_utf8(message, kMaxMessage);
    message += "...";
  }
  return {static_cast<grpc::StatusCode>(error.code()), message};
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
