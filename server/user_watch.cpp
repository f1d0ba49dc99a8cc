#include "server/user_watch.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/periodic.hpp"

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
    : file_(open_lock(file)), thread_(every(period, [this, unused = std::move(unused)] {
        const bool is_used = ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0;
        if (!is_used) {
          log_info("the last user has gone");
          unused();
        }
        return is_used;
      })) {}

}  // namespace cubind
