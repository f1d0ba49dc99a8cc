#include "client/cubindctl/tune/stop_signals.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <thread>

#include "base/error.hpp"
#include "base/signals.hpp"
#include "base/unique_fd.hpp"

namespace cubind::ctl {
namespace {

UniqueFd checked(int fd, const char* operation) {
  if (fd < 0) {
    throw system_error("signals", operation, errno);
  }
  return UniqueFd(fd);
}

// A descriptor of signals that the process no longer takes.
UniqueFd take_signals(sigset_t& before) {
  const sigset_t set = signal_set({SIGINT, SIGTERM});
  pthread_sigmask(SIG_BLOCK, &set, &before);
  return checked(signalfd(-1, &set, SFD_CLOEXEC), "signalfd");
}

}  // namespace

struct StopSignals::Waiter {
  sigset_t before;
  UniqueFd arrived = take_signals(before);
  UniqueFd ended = checked(eventfd(0, EFD_CLOEXEC), "eventfd");
  std::stop_source source;
  std::thread thread{[this] { wait(); }};

  ~Waiter() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written =
        write(ended.get(), &one, sizeof one);  // a fresh eventfd takes it
    thread.join();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void wait() {
    std::array<pollfd, 2> fds = {pollfd{arrived.get(), POLLIN, 0}, pollfd{ended.get(), POLLIN, 0}};
    while (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
    }
    if (fds[0].revents != 0) {
      source.request_stop();
    }
  }
};

StopSignals::StopSignals() : waiter_(std::make_unique<Waiter>()) {}
StopSignals::~StopSignals() = default;

std::stop_token StopSignals::token() const { return waiter_->source.get_token(); }

}  // namespace cubind::ctl
