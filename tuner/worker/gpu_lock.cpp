#include "tuner/worker/gpu_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/file.hpp"

namespace cubind::worker {

std::optional<GpuLock> GpuLock::try_acquire(const std::filesystem::path& folder, const std::string& uuid) {
  create_folders(folder, 0700);
  const std::filesystem::path path = folder / ("gpu-" + uuid + ".lock");
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) throw system_error(path.string(), "open", errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return GpuLock(std::move(fd));
  if (errno == EWOULDBLOCK) return std::nullopt;
  throw system_error(path.string(), "flock", errno);
}

}  // namespace cubind::worker
