#include "server/user_watch.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace cubind {
namespace {

UniqueFd open_lock(const std::filesystem::path& file) {
  UniqueFd opened(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!opened) {
    throw system_error(file.string(), "opening", errno);
  }
  return opened;
}

}  // namespace

UserWatch::UserWatch(const std::filesystem::path& file, std::chrono::milliseconds period,
                     std::function<void()> unused)
    : file_(open_lock(file)), period_(period), unused_(std::move(unused)), thread_([this] { run(); }) {}

UserWatch::~UserWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void UserWatch::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period_, [this] { return stopping_; })) {
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) {
      log_info("the last user has gone");
      lock.unlock();
      unused_();
      return;
    }
  }
}

}  // namespace cubind
