// The text that names a daemon.
#pragma once

#include <string>

namespace cubind {

/// Throws Error(InvalidArgument) unless the text is host:port, tls://host:port, or unix:///path with a path
/// that fits into a socket's address. gRPC does not see such a text.
void check_address(const std::string& address);

}  // namespace cubind
