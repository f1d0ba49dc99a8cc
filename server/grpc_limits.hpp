// What gRPC allows any caller of the daemon.
#pragma once

#include <grpcpp/server_builder.h>

#include <csignal>

namespace cubind {

/// Of messages, pings, streams and connections.
void set_limits(grpc::ServerBuilder& builder);

/// What the process tells itself when a listener of gRPC has failed to accept a connection, for want of a
/// descriptor or of memory: it never accepts again (CVE-2023-4785 in the version of Debian 12).
inline constexpr int kListenerLost = SIGUSR1;

/// The words of gRPC and of protobuf go to the daemon's log from now on.
void log_words_of_grpc();

}  // namespace cubind
