// How both ends of a connection find out that the other one is dead: the client asks (HTTP/2 PING) during a
// call, and the daemon allows it. gRPC's default for a server is one ping in five minutes; it closes
// connections that ask more often. python/cubind/_connection.py has the client's part too.
#pragma once

namespace cubind {

inline constexpr int kPingMs = 20'000;        // between two pings
inline constexpr int kPingAnswerMs = 20'000;  // then the connection is dead
inline constexpr int kMinPingMs = 5'000;      // how often a daemon allows them

}  // namespace cubind
