#include "client/connection_faults.hpp"

#include <sys/un.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/text.hpp"

namespace cubind {
namespace {

constexpr const char* kStartOne =
    "Start one with `cubind` (`cubind &` in the background), or name another daemon's address by "
    "CUBIND_ADDRESS";
constexpr const char* kStopped =
    "it is stopped (kill -CONT goes on with it), or its machine has no time for it: `cubindctl health` asks "
    "whether it lives";

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

/// gRPC's own words if it is the connection that failed; empty: they are the daemon's.
std::string connection_fault(const std::string& message, const std::string& address) {
  if (message.starts_with("store: ") || message.starts_with("kernel ")) {
    return "";  // the daemon's, of the server that its store lies in, or of a kernel of any name
  }
  const auto says = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(
        words, [&](std::string_view word) { return message.find(word) != std::string::npos; });
  };
  if (says({"SETTINGS frame", "keepalive", "ping timeout"})) {
    return std::string("a daemon has its socket there and does not answer: ") + kStopped;
  }
  if (says({"DNS resolution failed", "errors resolving"})) {
    return "no such host: name one of DNS or /etc/hosts as host:port, or a socket as unix:///path, by "
           "--address or CUBIND_ADDRESS";
  }
  const bool is_closed_at_once = !address.starts_with("unix:") && says({"failed to connect"}) &&
                                 says({"Endpoint read failed", "Socket closed", "Connection reset"});
  const bool is_tls = address.starts_with("tls://");
  if (is_closed_at_once && !is_tls) {
    return "the connection was closed at once: a daemon with TLS has the address tls://HOST:PORT";
  }
  if (is_closed_at_once ||
      says({"andshake", "CERTIFICATE_VERIFY_FAILED", "Peer name", "Hostname Verification"})) {
    return "the TLS handshake failed: CUBIND_CA_FILE names the CA that has signed the daemon's certificate, "
           "which "
           "must have the host of the address; a daemon with --tls-client-ca asks for CUBIND_CLIENT_CERT and "
           "CUBIND_CLIENT_KEY too";
  }
  if (says({"http1", "Http1"})) {
    return "another service answers there, not a daemon of cubind: name the daemon's address";
  }
  const bool is_none = says({"failed to connect", "connect failed", "connections to all backends failing"});
  const std::string why =
      says({"No such file"})         ? " (there is no such socket)"
      : says({"Connection refused"}) ? " (nothing listens there)"
      : says({"timed out"})          ? " (its host does not answer)"
      : says({"Permission denied"})
          ? " (the socket is another user's, who can open one to a group: cubind --socket-group)"
          : "";
  if (is_none || says({"No such file", "Connection refused"})) {
    return "no daemon answers there" + why + ". " + kStartOne;
  }
  if (says({"Socket closed", "Connection reset", "Broken pipe", "recvmsg", "GOAWAY",
            "Cancelling all calls"})) {
    return "the daemon ended during the call. Its jobs go on when it runs again, or at once at another "
           "daemon of its store: `cubindctl jobs` lists them";
  }
  return "";
}

}  // namespace

void check_address(const std::string& address) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, "address", quoted(address) + why);
  };
  if (address.starts_with("unix:/") && address.size() > 6) {
    const std::string path = address.substr(address.starts_with("unix://") ? 7 : 5);
    constexpr std::size_t kLongest = sizeof(sockaddr_un{}.sun_path) - 1;
    if (path.size() > kLongest) {
      refuse(": the path has " + std::to_string(path.size()) + " bytes, a socket's at most " +
             std::to_string(kLongest) + ": start the daemon with --socket in a folder nearer to the root");
    }
    return;
  }
  const std::string place = address.substr(address.starts_with("tls://") ? 6 : 0);
  if (place.find("://") != std::string::npos) {
    refuse(
        " is a web address, and a daemon is not a web server: write host:port, tls://host:port or "
        "unix:///path");
  }
  const std::size_t colon = place.rfind(':');
  const bool is_tcp = colon != std::string::npos && colon > 0 && colon + 1 < place.size() &&
                      place.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!is_tcp) {
    refuse(" is neither unix:///path/to/socket nor host:port nor tls://host:port");
  }
}

Error error_of(const grpc::Status& status, const std::string& address) {
  const std::string& message = status.error_message();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    if (const std::string fault = connection_fault(message, address); !fault.empty()) {
      return {ErrorCode::Unavailable, address, fault};
    }
  }
  // gRPC's own words; the daemon says what it waits for.
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && message == "Deadline Exceeded") {
    return {ErrorCode::DeadlineExceeded, address,
            "no answer in time: `cubindctl health` says whether the daemon lives. A longer deadline gives it "
            "more "
            "time (cubindctl: --timeout)"};
  }
  return {code_of(status.error_code()), "", printable(message)};
}

}  // namespace cubind
