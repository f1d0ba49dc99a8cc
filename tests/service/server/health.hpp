// The health service, asked without its generated code (Debian ships none): the request and the reply are a
// few bytes.
#pragma once

#include <string>

namespace cubind::test {

/// Whether grpc.health.v1.Health/Check at this address answers SERVING.
bool is_healthy(const std::string& address);

}  // namespace cubind::test
