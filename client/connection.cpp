#include "client/connection.hpp"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"

namespace cubind {
namespace {

constexpr const char* kSystemSocket = "/run/cubind/cubind.sock";

void check_address(const std::string& address) {
  const bool is_unix = address.starts_with("unix:/") && address.size() > 6;
  const std::size_t colon = address.rfind(':');
  const bool is_tcp = colon != std::string::npos && colon > 0 && colon + 1 < address.size() &&
                      address.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!is_unix && !is_tcp) {
    throw Error(ErrorCode::InvalidArgument, "address", "'" + address + "' is neither unix:///path/to/socket nor host:port");
  }
}

ErrorCode code_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE: return ErrorCode::InvalidArgument;
    case grpc::StatusCode::NOT_FOUND: return ErrorCode::NotFound;
    case grpc::StatusCode::ALREADY_EXISTS: return ErrorCode::AlreadyExists;
    case grpc::StatusCode::FAILED_PRECONDITION: return ErrorCode::FailedPrecondition;
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return ErrorCode::ResourceExhausted;
    case grpc::StatusCode::UNAVAILABLE: return ErrorCode::Unavailable;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return ErrorCode::DeadlineExceeded;
    case grpc::StatusCode::ABORTED: return ErrorCode::Aborted;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED: return ErrorCode::PermissionDenied;
    case grpc::StatusCode::DATA_LOSS: return ErrorCode::DataLoss;
    case grpc::StatusCode::UNIMPLEMENTED: return ErrorCode::Unimplemented;
    case grpc::StatusCode::CANCELLED: return ErrorCode::Cancelled;
    default: return ErrorCode::Internal;
  }
}

// What gRPC itself says where nobody listens; the daemon's own UNAVAILABLE has other words.
bool is_connect_failure(const grpc::Status& status) {
  const std::string& message = status.error_message();
  return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
         (message.find("failed to connect") != std::string::npos || message.find("connect failed") != std::string::npos ||
          message.find("No such file") != std::string::npos || message.find("Connection refused") != std::string::npos);
}

}  // namespace

std::string resolve_address(const std::string& given) {
  std::string address = given;
  if (address.empty()) {
    if (const char* variable = std::getenv("CUBIND_ADDRESS")) address = variable;
  }
  if (address.empty()) {
    const std::filesystem::path user = user_runtime_dir() / "cubind.sock";
    const bool system_only = !std::filesystem::exists(user) && std::filesystem::exists(kSystemSocket);
    address = "unix://" + (system_only ? std::string(kSystemSocket) : user.string());
  }
  check_address(address);
  return address;
}

Connection::Connection(std::string address) : address_(std::move(address)) {
  stub_ = v1::Cubind::NewStub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
}

void Connection::check(const grpc::Status& status) const {
  if (status.ok()) return;
  if (is_connect_failure(status)) {
    throw Error(ErrorCode::Unavailable, address_,
                "no daemon answers there. Start one with `cubind` (it runs in the foreground; add & or use the service "
                "file), or name another by --address or CUBIND_ADDRESS");
  }
  throw Error(code_of(status.error_code()), "", status.error_message());
}

std::chrono::system_clock::time_point deadline_in(std::chrono::milliseconds time) {
  return std::chrono::system_clock::now() + time;
}

}  // namespace cubind
