#include "server/service/status.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/request_id.hpp"
#include "base/text.hpp"
#include "server/access/unauthenticated.hpp"

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
  std::string message = printable(error.what());
  if (const std::size_t length = length_that_travels(message); length < message.size()) {
    message = cut_utf8(message, length) + "...";
  }
  return {static_cast<grpc::StatusCode>(error.code()), message};
}

std::string status_name(grpc::StatusCode code) {
  static constexpr std::array kNames{
      "ok",        "cancelled",      "unknown",           "invalid_argument",   "deadline_exceeded",
      "not_found", "already_exists", "permission_denied", "resource_exhausted", "failed_precondition",
      "aborted",   "out_of_range",   "unimplemented",     "internal",           "unavailable",
      "data_loss", "unauthenticated"};
  const auto number = static_cast<std::size_t>(code);
  return number < kNames.size() ? kNames[number] : "unknown";
}

namespace {

/// Names the request, whose lines the log has.
grpc::Status internal(const std::string& cause) {
  const RequestId id = current_request();
  return to_status(Error(ErrorCode::Internal, "", cause + (id ? " [request " + *id + "]" : "")));
}

}  // namespace

grpc::Status current_status() {
  try {
    throw;
  } catch (const Unauthenticated& error) {
    return {grpc::StatusCode::UNAUTHENTICATED, error.what()};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::DataLoss || error.code() == ErrorCode::Internal) {
      log_error(error.what());
    }
    return error.code() == ErrorCode::Internal ? internal(error.what()) : to_status(error);
  } catch (const std::exception& fault) {
    log_error(std::string("a request failed unexpectedly: ") + fault.what());
    return internal(fault.what());
  }
}

}  // namespace cubind
