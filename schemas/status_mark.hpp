// The daemon marks each call that it ends by this trailing metadata, errors included. A status without it is
// gRPC's own or a proxy's, whatever its words. python/cubind/_connection.py has the same name.
#pragma once

namespace cubind {

inline constexpr const char* kStatusMark = "cubind-status";

}  // namespace cubind
