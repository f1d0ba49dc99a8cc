#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.hpp"

namespace cubind {

// Length-delimited messages over a stream socket (a socketpair between agent and worker):
//
//   frame = length payload{length}
//   length = u32, little-endian
//
// The descriptor may be blocking or not: all calls poll. None raises SIGPIPE, all go on after EINTR. One
// thread may read while another writes; two readers or two writers need a lock of their own. After any Error
// but the DeadlineExceeded of wait_readable() a stream may stand in the middle of a frame: close it.

using SteadyDeadline = std::chrono::steady_clock::time_point;

/// A connected pair of stream sockets, both closed on exec.
std::pair<UniqueFd, UniqueFd> make_socket_pair();

/// Sends one frame. Throws InvalidArgument above 4 GiB - 1, Unavailable when the peer is gone,
/// DeadlineExceeded when the deadline passes before the last byte was taken.
void write_frame(int fd, std::string_view payload);
void write_frame_until(int fd, std::string_view payload, SteadyDeadline deadline);

/// Receives one frame; nullopt when the peer closed the stream between two frames. Throws DataLoss when it
/// ends inside a frame, ResourceExhausted when the frame is longer than max_bytes (nothing is allocated for
/// it), DeadlineExceeded when the deadline passes before the last byte. A peer that was reset counts as
/// closed.
std::optional<std::string> read_frame(int fd, std::size_t max_bytes);
std::optional<std::string> read_frame_until(int fd, std::size_t max_bytes, SteadyDeadline deadline);

/// True when a read would not block (bytes or end of stream), false when the deadline passed. Consumes
/// nothing.
bool wait_readable(int fd, SteadyDeadline deadline);

}  // namespace cubind
