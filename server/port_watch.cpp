#include "server/port_watch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "base/unique_fd.hpp"

namespace cubind {
namespace {

enum class Finding { Answers, Silent, Unknown };

/// HTTP/2's preface with an empty SETTINGS frame (RFC 9113, 3.4): the server answers with its own.
constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 24 + 9);

/// Connecting proves nothing: the kernel queues connections before the daemon accepts them.
Finding look(const std::string& path, std::chrono::milliseconds patience) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // The server needs one too.
  const UniqueFd spare(socket ? ::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0) : -1);
  if (!socket || !spare) {
    return Finding::Unknown;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Finding::Silent;  // the queue is full
  }
  if (::send(socket.get(), kPreface.data(), kPreface.size(), MSG_NOSIGNAL) < 0) {
    return Finding::Silent;
  }
  pollfd wait{socket.get(), POLLIN, 0};
  char byte = 0;
  if (::poll(&wait, 1, static_cast<int>(patience.count())) != 1) {
    return Finding::Silent;
  }
  return ::recv(socket.get(), &byte, 1, 0) == 1 ? Finding::Answers : Finding::Silent;
}

}  // namespace

PortWatch::PortWatch(PortWatchOptions options, std::function<void()> deaf)
    : options_(std::move(options)), deaf_(std::move(deaf)), thread_([this] { run(); }) {}

PortWatch::~PortWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void PortWatch::run() {
  int silent = 0;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, options_.period, [this] { return stopping_; })) {
    lock.unlock();
    const Finding finding = look(options_.socket.string(), options_.patience);
    lock.lock();
    // Without descriptors it is deaf for now. It is deaf forever if it stays so when descriptors are free
    // again.
    silent = finding == Finding::Silent ? silent + 1 : finding == Finding::Answers ? 0 : silent;
    if (silent >= options_.failures && !stopping_) {
      log_error(options_.socket.string() + ": no connection is accepted any more");
      lock.unlock();
      deaf_();
      return;
    }
  }
}

}  // namespace cubind
