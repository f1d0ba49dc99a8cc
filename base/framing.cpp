#include "base/framing.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>

#include "base/error.hpp"

namespace cubind {
namespace {

constexpr char kWhere[] = "frame";
constexpr std::size_t kHeaderBytes = 4;
constexpr SteadyDeadline kNever = SteadyDeadline::max();

// Milliseconds for poll: -1 waits forever. Rounded up, or a loop would spin through the last millisecond.
int poll_timeout(SteadyDeadline deadline) {
  using std::chrono::milliseconds;
  if (deadline == kNever) {
    return -1;
  }
  const auto now = std::chrono::steady_clock::now();
  if (deadline <= now) {
    return 0;
  }
  const auto left = std::chrono::ceil<milliseconds>(deadline - now).count();
  return static_cast<int>(std::min<std::int64_t>(left, std::numeric_limits<int>::max()));
}

// True when the descriptor is ready for `events` (or broken: the next call says how), false at the deadline.
bool wait_for(int fd, short events, SteadyDeadline deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const int timeout = poll_timeout(deadline);
    const int ready = ::poll(&entry, 1, timeout);
    if (ready > 0) {
      return true;
    }
    if (ready < 0 && errno != EINTR) {
      throw system_error(kWhere, "poll", errno);
    }
    if (deadline != kNever && std::chrono::steady_clock::now() >= deadline) {
      return false;
    }
  }
}

bool would_block(int error_number) { return error_number == EAGAIN || error_number == EWOULDBLOCK; }

void write_bytes(int fd, std::string_view bytes, SteadyDeadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (would_block(errno)) {
      if (!wait_for(fd, POLLOUT, deadline)) {
        throw Error(ErrorCode::DeadlineExceeded, kWhere, "the peer did not take it in time");
      }
    } else if (errno == EPIPE || errno == ECONNRESET) {
      throw Error(ErrorCode::Unavailable, kWhere, "the peer has closed the stream");
    } else if (errno != EINTR) {
      throw system_error(kWhere, "send", errno);
    }
  }
}

// Reads up to `size` bytes; fewer only at the end of the stream.
std::size_t read_bytes(int fd, char* into, std::size_t size, SteadyDeadline deadline) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::recv(fd, into + done, size - done, MSG_DONTWAIT);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (got == 0 || errno == ECONNRESET) {
      break;
    } else if (would_block(errno)) {
      if (!wait_for(fd, POLLIN, deadline)) {
        throw Error(ErrorCode::DeadlineExceeded, kWhere, "it did not arrive in time");
      }
    } else if (errno != EINTR) {
      throw system_error(kWhere, "recv", errno);
    }
  }
  return done;
}

}  // namespace

std::pair<UniqueFd, UniqueFd> make_socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    throw system_error("socketpair", "cannot create", errno);
  }
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

void write_frame(int fd, std::string_view payload) { write_frame_until(fd, payload, kNever); }

void write_frame_until(int fd, std::string_view payload, SteadyDeadline deadline) {
  if (payload.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::InvalidArgument, kWhere,
                std::to_string(payload.size()) + " bytes do not fit into one");
  }
  std::array<char, kHeaderBytes> header;
  for (std::size_t i = 0; i < header.size(); ++i) {
    header[i] = static_cast<char>(static_cast<unsigned char>(payload.size() >> (8 * i)));
  }
  write_bytes(fd, {header.data(), header.size()}, deadline);
  write_bytes(fd, payload, deadline);
}

std::optional<std::string> read_frame(int fd, std::size_t max_bytes) {
  return read_frame_until(fd, max_bytes, kNever);
}

std::optional<std::string> read_frame_until(int fd, std::size_t max_bytes, SteadyDeadline deadline) {
  std::array<char, kHeaderBytes> header;
  const std::size_t got = read_bytes(fd, header.data(), header.size(), deadline);
  if (got == 0) {
    return std::nullopt;
  }
  if (got < header.size()) {
    throw Error(ErrorCode::DataLoss, kWhere, "the stream ends inside the length");
  }
  std::size_t length = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    length |= std::size_t{static_cast<unsigned char>(header[i])} << (8 * i);
  }
  if (length > max_bytes) {
    throw Error(
        ErrorCode::ResourceExhausted, kWhere,
        std::to_string(length) + " bytes are announced, at most " + std::to_string(max_bytes) + " are taken");
  }
  std::string payload(length, '\0');
  const std::size_t arrived = read_bytes(fd, payload.data(), length, deadline);
  if (arrived < length) {
    throw Error(
        ErrorCode::DataLoss, kWhere,
        "the stream ends after " + std::to_string(arrived) + " of " + std::to_string(length) + " bytes");
  }
  return payload;
}

bool wait_readable(int fd, SteadyDeadline deadline) { return wait_for(fd, POLLIN, deadline); }

}  // namespace cubind
