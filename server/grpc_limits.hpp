// What gRPC allows any caller of the daemon.
#pragma once

#include <grpcpp/server_builder.h>

namespace cubind {

inline constexpr int kStreamsOfConnection = 1000;

/// Of messages, pings, streams and connections.
void set_limits(grpc::ServerBuilder& builder);

/// gRPC's words go to the daemon's log from now on.
void log_words_of_grpc();

}  // namespace cubind
