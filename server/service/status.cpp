#include "server/service/status.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace cubind {
namespace {

template <ErrorCode code, grpc::StatusCode status>
constexpr bool kSame = static_cast<int>(code) == static_cast<int>(status);

static_assert(kSame<ErrorCode::InvalidArgument, grpc::StatusCode::INVALID_ARGUMENT> &&
              kSame<ErrorCode::NotFound, grpc::StatusCode::NOT_FOUND> &&
              kSame<ErrorCode::AlreadyExists, grpc::StatusCode::ALREADY_EXISTS> &&
              kSame<ErrorCode::FailedPrecondition, grpc::StatusCode::FAILED_PRECONDITION> &&
              kSame<ErrorCode::ResourceExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED> &&
              kSame<ErrorCode::Unavailable, grpc::StatusCode::UNAVAILABLE> &&
              kSame<ErrorCode::DeadlineExceeded, grpc::StatusCode::DEADLINE_EXCEEDED> &&
              kSame<ErrorCode::Aborted, grpc::StatusCode::ABORTED> &&
              kSame<ErrorCode::PermissionDenied, grpc::StatusCode::PERMISSION_DENIED> &&
              kSame<ErrorCode::DataLoss, grpc::StatusCode::DATA_LOSS> &&
              kSame<ErrorCode::Unimplemented, grpc::StatusCode::UNIMPLEMENTED> &&
              kSame<ErrorCode::Cancelled, grpc::StatusCode::CANCELLED> &&
              kSame<ErrorCode::Internal, grpc::StatusCode::INTERNAL>);

/// A status travels in a header, percent-encoded: where all headers together are above 8 KiB, gRPC drops the
/// whole reply.
constexpr std::size_t kMaxMessage = 4096;
constexpr std::size_t kMaxEncoded = 6144;

/// The first bytes, as many as may travel.
std::size_t length_that_travels(std::string_view message) {
  std::size_t encoded = 0;
  for (std::size_t i = 0; i < std::min(message.size(), kMaxMessage); ++i) {
    const bool as_it_is = message[i] >= 0x20 && message[i] <= 0x7e && message[i] != '%';
    encoded += as_it_is ? 1 : 3;
    if (encoded > kMaxEncoded) {
      return i;
    }
  }
  return std::min(message.size(), kMaxMessage);
}

}  // namespace

grpc::Status to_status(const Error& error) {
  std::string message = error.what();
  if (const std::size_t length = length_that_travels(message); length < message.size()) {
    message = cut_utf8(message, length) + "...";
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
