#include "base/log_sink.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <string>
#include <utility>

namespace cubind {

LogSink::LogSink(int fd) : fd_(fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return;
  }
  is_socket_ = S_ISSOCK(status.st_mode);
  // A file would be written from its start, and never makes its writer wait for a reader.
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    own_.reset(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                      O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
}

void LogSink::sink_it_(const spdlog::details::log_msg& message) {
  if (dropped_ > 0) {
    write_number_of_dropped(message);
  }
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  if (dropped_ > 0 || !write({line.data(), line.size()})) {
    ++dropped_;
  }
}

void LogSink::write_number_of_dropped(const spdlog::details::log_msg& before) {
  const std::string text = std::to_string(dropped_) + " lines were dropped: the log was not read";
  spdlog::memory_buf_t line;
  formatter_->format({before.time, before.source, before.logger_name, spdlog::level::warn, text}, line);
  if (write({line.data(), line.size()})) {
    dropped_ = 0;
  }
}

// In pieces that a pipe takes as a whole or not at all.
bool LogSink::write(std::string_view text) {
  if (is_torn_ && write_some("\n") != 1) {
    return false;
  }
  is_torn_ = false;
  while (!text.empty()) {
    const ssize_t written = write_some(text.substr(0, PIPE_BUF));
    if (written <= 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
    is_torn_ = !text.empty();
  }
  return true;
}

ssize_t LogSink::write_some(std::string_view text) {
  if (is_socket_) {
    return ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (own_) {
    const ssize_t written = ::write(own_.get(), text.data(), text.size());
    if (written >= 0 || errno != EBADF) {
      return written;
    }
    own_.reset();  // a compile worker has closed everything but what it needs
  }
  pollfd room{fd_, POLLOUT, 0};
  if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) {
    return -1;
  }
  return ::write(fd_, text.data(), text.size());
}

}  // namespace cubind
