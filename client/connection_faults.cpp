#include "client/connection_faults.hpp"

#include "base/text.hpp"
#include "schemas/status_mark.hpp"

namespace cubind {
namespace {

ErrorCode code_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OUT_OF_RANGE:
      return ErrorCode::InvalidArgument;
    case grpc::StatusCode::UNAUTHENTICATED:
      return ErrorCode::PermissionDenied;
    case grpc::StatusCode::OK:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::DO_NOT_USE:
      return ErrorCode::Internal;
    default:
      return static_cast<ErrorCode>(code);
  }
}

constexpr const char* kStartOne =
    "Start one with `cubind &`, or name another daemon's address by CUBIND_ADDRESS";

/// What to look at if no daemon answers at the address.
std::string remedy_at(const std::string& address) {
  if (address.starts_with("tls://")) {
    return "If the TLS handshake failed: CUBIND_CA_FILE names the CA that has signed the daemon's "
           "certificate, "
           "which must have the host of the address; a daemon with --tls-client-ca asks for "
           "CUBIND_CLIENT_CERT "
           "and CUBIND_CLIENT_KEY too";
  }
  if (!address.starts_with("unix:")) {
    return "A daemon with TLS has the address tls://HOST:PORT, one on this machine unix:///path: name it by "
           "--address or CUBIND_ADDRESS";
  }
  return std::string(kStartOne) + ". A daemon that is stopped keeps its socket: kill -CONT goes on with it";
}

/// The error of a call that did not reach the daemon, or whose end did not come back. `words` are gRPC's or a
/// proxy's.
Error connection_error(grpc::StatusCode code, const std::string& words, const std::string& address) {
  if (code == grpc::StatusCode::UNAVAILABLE) {
    const auto says = [&](const char* cause) {
      return address.starts_with("unix:") && words.find(cause) != std::string::npos;
    };
    if (says("No such file or directory")) {
      return {ErrorCode::Unavailable, address,
              std::string("no daemon answers there (there is no such socket). ") + kStartOne};
    }
    if (says("Permission denied")) {
      return {
          ErrorCode::Unavailable, address,
          "no daemon answers there (Permission denied): the socket is another user's, whose daemon lets a "
          "group in by `cubind --socket-group`"};
    }
    return {ErrorCode::Unavailable, address,
            "no daemon answers there (" + words + "). " + remedy_at(address) +
                ". If it ended during the call, its jobs go on when it runs again: `cubindctl jobs` lists "
                "them"};
  }
  if (code == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return {ErrorCode::DeadlineExceeded, address,
            "no answer in time: `cubindctl health` says whether the daemon lives. A longer deadline gives it "
            "more time (cubindctl: --timeout)"};
  }
  if (code == grpc::StatusCode::RESOURCE_EXHAUSTED && words.find("larger than max") != std::string::npos) {
    return {code_of(code), address, "the call or its answer is too large (" + words + ")"};
  }
  return {code_of(code), address,
          "the call failed (" + words +
              "), not by the daemon's word: another service, a proxy or a daemon of "
              "another version may have the address"};
}

}  // namespace

Error error_of(const grpc::Status& status, const grpc::ClientContext& call, const std::string& address) {
  const std::string words = printable(status.error_message());
  if (!call.GetServerTrailingMetadata().contains(kStatusMark)) {
    return connection_error(status.error_code(), words, address);
  }
  return {code_of(status.error_code()), "", words};
}

}  // namespace cubind
