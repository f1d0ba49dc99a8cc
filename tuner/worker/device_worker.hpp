// The request loop of a device worker.
#pragma once

#include "tuner/worker/device_backend.hpp"
#include "tuner/worker/modes.hpp"

namespace cubind::worker {

/// Requests hold a cubin or the expected outputs of a problem.
inline constexpr std::size_t kMaxRequestBytes = std::size_t{1} << 30;

/// Answers requests from the socket, in order, one reply each, until the peer closes it or a reply was
/// sticky. A request that does not parse, or an Error from the backend, is answered by a reply whose outcome
/// is unspecified and whose detail says why.
ExitCode serve_device(int fd, DeviceBackend& device);

}  // namespace cubind::worker
