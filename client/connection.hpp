// The gRPC side of the client library and of cubindctl: address, channel, status to Error.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "schemas/cubind.grpc.pb.h"

namespace cubind {

/// `given`, else CUBIND_ADDRESS, else the socket of the user's daemon, else that of the system's (/run/cubind/cubind.sock)
/// where only that exists. Throws Error(InvalidArgument) for what is neither unix:///path nor host:port.
std::string resolve_address(const std::string& given);

/// Safe on many threads. Connects when the first call is made.
class Connection {
 public:
  explicit Connection(std::string address);

  v1::Cubind::Stub& stub() const { return *stub_; }
  const std::string& address() const { return address_; }

  /// Does nothing for an OK status, else throws Error with the daemon's code and message. Where nothing listens the message
  /// says how to start a daemon.
  void check(const grpc::Status& status) const;

 private:
  std::string address_;
  std::unique_ptr<v1::Cubind::Stub> stub_;
};

/// A deadline for one call.
std::chrono::system_clock::time_point deadline_in(std::chrono::milliseconds time);

}  // namespace cubind
