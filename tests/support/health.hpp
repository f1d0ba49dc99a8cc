// The health service, asked without its generated code (Debian ships none): request and reply are a few
// bytes.
#pragma once

#include <optional>
#include <string>

namespace cubind::test {

/// What grpc.health.v1.Health/Check says of the whole server: 0 unknown, 1 serving, 2 not serving; absent: no
/// answer.
std::optional<int> health_of(const std::string& address);

}  // namespace cubind::test
